//! Who has which contended lock, who waits for it, and who is lent what.
//!
//! A [`Lock`] is here only while somebody waits, or while its new owner has yet to write its
//! word. A thread knows for which lock it waits, and which of the locks here are its own with the
//! best rank that waits for each ([`Share`](crate::share::Share)): the best of these it is lent.
//!
//! Bounds: a thread waits for one lock, so there are no more locks and waiters than threads. A
//! chain of owners that wait is followed for [`DEPTH_MAX`] steps; a longer one counts as a
//! circle.

use alloc::sync::Arc;
use alloc::vec::Vec;

use base::lock::Lock as _;

use super::lock::Lock;
use crate::host::{Host, Thread, room};
use crate::{Key, Refusal};

/// Owners that are looked at in a chain (Linux's max_lock_depth).
const DEPTH_MAX: usize = 1024;

/// All contended locks, hashed by their keys.
pub struct Locks<H: Host, const BUCKETS: usize>([Vec<Lock<H>>; BUCKETS]);

impl<H: Host, const BUCKETS: usize> Default for Locks<H, BUCKETS> {
    fn default() -> Self {
        Self::new()
    }
}

impl<H: Host, const BUCKETS: usize> Locks<H, BUCKETS> {
    /// None.
    pub const fn new() -> Self {
        Self([const { Vec::new() }; BUCKETS])
    }

    fn bucket(&mut self, key: Key) -> &mut Vec<Lock<H>> {
        &mut self.0[key.bucket(BUCKETS)]
    }

    fn find(&self, key: Key) -> Option<&Lock<H>> {
        let bucket = &self.0[key.bucket(BUCKETS)];
        bucket.iter().find(|lock| lock.key == key)
    }

    fn find_mut(&mut self, key: Key) -> Option<&mut Lock<H>> {
        self.bucket(key).iter_mut().find(|lock| lock.key == key)
    }

    /// Who has the lock, if it is here.
    pub(super) fn owner(&self, key: Key) -> Option<&Arc<H::Thread>> {
        self.find(key).map(|lock| &lock.owner)
    }

    /// Whether the lock has an owner that its word does not name yet.
    pub(super) fn is_unwritten(&self, key: Key) -> bool {
        self.find(key).is_some_and(|lock| lock.is_unwritten)
    }

    /// Who gets the lock next.
    pub(super) fn next(&self, key: Key) -> Option<&Arc<H::Thread>> {
        self.find(key)?.next()
    }

    /// Whether `owner` waits, at last, for `thread`.
    fn is_circle(&self, thread: &H::Thread, owner: &Arc<H::Thread>) -> bool {
        let mut at = owner;
        for _ in 0..DEPTH_MAX {
            if core::ptr::eq(&**at, thread) {
                return true;
            }
            let waits_for = at.waiter().pi.lock().waits_for;
            let Some(lock) = waits_for.and_then(|key| self.find(key)) else {
                return false;
            };
            at = &lock.owner;
        }
        true
    }

    /// `thread` waits for the lock `key` of `owner`. On a refusal nothing has changed.
    pub(super) fn wait(
        &mut self,
        thread: &Arc<H::Thread>,
        key: Key,
        owner: &Arc<H::Thread>,
    ) -> Result<(), Refusal> {
        if self.is_circle(thread, owner) {
            return Err(Refusal::Deadlock);
        }
        // What it gets later takes no memory then.
        thread.waiter().pi.lock().make_room(1)?;
        match self.find_mut(key) {
            Some(lock) => lock.make_room()?,
            None => self.add(key, owner)?,
        }
        if let Some(lock) = self.find_mut(key) {
            lock.insert(thread.clone());
        }
        thread.waiter().pi.lock().waits_for = Some(key);
        thread.waiter().expect_wake();
        self.pass_on(key);
        Ok(())
    }

    /// A lock that is contended from now on, with room for one who waits.
    fn add(&mut self, key: Key, owner: &Arc<H::Thread>) -> Result<(), Refusal> {
        let lock = Lock::new(key, owner.clone())?;
        // One for this, and one for what the owner may wait for itself.
        owner.waiter().pi.lock().make_room(2)?;
        let bucket = self.bucket(key);
        room::<H, _>(bucket, 1)?;
        bucket.push(lock);
        owner.waiter().pi.lock().own(key, H::Thread::FAIR);
        Ok(())
    }

    /// Lends the owner of `key` what it is to be lent, and whom that one waits for, and so on.
    fn pass_on(&mut self, mut key: Key) {
        for _ in 0..DEPTH_MAX {
            let Some(lock) = self.find(key) else { return };
            let owner = lock.owner.clone();
            owner.waiter().pi.lock().note(key, lock.best());
            let before = owner.rank();
            lend::<H>(&owner);
            let waits_for = owner.waiter().pi.lock().waits_for;
            let Some(next) = waits_for.filter(|_| owner.rank() != before) else {
                return;
            };
            self.sort_among(next, &owner);
            key = next;
        }
    }

    /// Puts one who waits for `key` where its rank belongs now.
    fn sort_among(&mut self, key: Key, thread: &H::Thread) {
        if let Some(lock) = self.find_mut(key)
            && let Some(thread) = lock.remove(thread)
        {
            lock.insert(thread);
        }
    }

    /// The thread competes by another rank: those for whose locks it waits hear of it.
    pub(super) fn note_rank(&mut self, thread: &H::Thread) {
        let waits_for = thread.waiter().pi.lock().waits_for;
        if let Some(key) = waits_for {
            self.sort_among(key, thread);
            self.pass_on(key);
        }
    }

    /// `thread` waits no longer; false if it has got the lock meanwhile.
    pub(super) fn give_up(&mut self, thread: &H::Thread) -> bool {
        let Some(key) = thread.waiter().pi.lock().waits_for.take() else {
            return false;
        };
        if let Some(lock) = self.find_mut(key) {
            let gone = lock.remove(thread);
            debug_assert!(gone.is_some(), "it waits where it says");
        }
        self.pass_on(key);
        self.settle(key);
        true
    }

    /// Forgets a lock that nobody waits for and whose word is right.
    fn settle(&mut self, key: Key) {
        let bucket = self.bucket(key);
        let is_over =
            |lock: &Lock<H>| lock.key == key && lock.is_uncontended() && !lock.is_unwritten;
        let place = bucket.iter().position(is_over);
        if let Some(lock) = place.map(|place| bucket.swap_remove(place)) {
            lock.owner.waiter().pi.lock().forget(key);
            lend::<H>(&lock.owner);
        }
    }

    /// The lock goes from `owner` to the best of those who wait, if any does, who finds it in
    /// its word or has to write itself there.
    pub(super) fn hand_over(&mut self, key: Key, owner: &H::Thread, is_unwritten: bool) {
        let lock = self.find_mut(key);
        let Some(lock) = lock.filter(|lock| core::ptr::eq(&*lock.owner, owner)) else {
            return;
        };
        let next = lock.promote();
        lock.is_unwritten = is_unwritten && next.is_some();
        if let Some(next) = next {
            let best = lock.best();
            let mut share = next.waiter().pi.lock();
            share.waits_for = None;
            // It made room before it waited.
            share.own(key, best);
            drop(share);
            owner.waiter().pi.lock().forget(key);
            lend::<H>(&next);
            lend::<H>(owner);
            next.waiter().wake(&next);
        }
        self.settle(key);
    }

    /// The word of `key` names its owner now.
    pub(super) fn note_written(&mut self, key: Key) {
        if let Some(lock) = self.find_mut(key) {
            lock.is_unwritten = false;
        }
        self.settle(key);
    }

    /// The lock that `me` has got and whose word does not say so yet.
    pub(super) fn unwritten_of(&self, me: &H::Thread) -> Option<Key> {
        let share = me.waiter().pi.lock();
        share.owned().find(|key| self.is_unwritten(*key))
    }

    /// Hands one lock over that a dying thread has; false if it has none any more, and, if it
    /// `is_last`, gets none.
    pub(super) fn release_one(&mut self, me: &H::Thread, is_last: bool) -> bool {
        let mut share = me.waiter().pi.lock();
        let Some(key) = share.pop() else {
            share.has_ended = is_last;
            return false;
        };
        drop(share);
        self.hand_over(key, me, true);
        true
    }
}

/// Lends a thread the best rank that waits for anything of its own.
fn lend<H: Host>(thread: &H::Thread) {
    let best = thread.waiter().pi.lock().best();
    thread.lend(best);
}
