//! Who has which contended lock, who waits for it, and who is lent what.
//!
//! A [`Lock`] is here only while somebody waits, or while its new owner has yet to write its
//! word. A thread knows for which lock it waits, and which of the locks here are its own with the best
//! rank that waits for each ([`Share`]): the best of these it is lent.
//!
//! Bounds: a thread waits for one lock, so there are no more locks and waiters than threads. A
//! chain of owners that wait is followed for [`DEPTH_MAX`] steps; a longer one counts as a
//! circle.

use alloc::sync::Arc;
use alloc::vec::Vec;

use base::VirtAddr;
use mach::mem::fallible::{self, TryGrow};
use mach::sync::Spin;

use super::word::{self, OWNER_DIED, Seen, WAITERS};
use crate::error::{Error, Result};
use crate::futex::Key;
use crate::sched::{self, Rank};
use crate::task::{Thread, find_thread};

/// Owners that are looked at in a chain (Linux's max_lock_depth).
const DEPTH_MAX: usize = 1024;
const BUCKETS: usize = 256;

/// A thread's part in it; only changed under the table's lock.
#[derive(Default)]
pub struct Share {
    waits_for: Option<Key>,
    owned: Vec<(Key, Rank)>,
    /// It has given up all it had, and gets nothing any more.
    has_ended: bool,
}

impl Share {
    fn best(&self) -> Rank {
        let ranks = self.owned.iter().map(|(_, rank)| *rank);
        ranks.min().unwrap_or(Rank::FAIR)
    }

    fn forget(&mut self, key: Key) {
        self.owned.retain(|(own, _)| *own != key);
    }

    fn note(&mut self, key: Key, best: Rank) {
        for (_, rank) in self.owned.iter_mut().filter(|(own, _)| *own == key) {
            *rank = best;
        }
    }
}

struct Lock {
    key: Key,
    owner: Arc<Thread>,
    /// By rank, then as they came.
    waiters: Vec<(Rank, Arc<Thread>)>,
    /// The word does not name the owner yet.
    is_unwritten: bool,
}

impl Lock {
    fn best(&self) -> Rank {
        self.waiters.first().map_or(Rank::FAIR, |(rank, _)| *rank)
    }

    fn insert(&mut self, rank: Rank, thread: Arc<Thread>) {
        let place = self.waiters.partition_point(|(before, _)| *before <= rank);
        self.waiters.insert(place, (rank, thread));
    }

    fn remove(&mut self, thread: &Thread) -> Option<Arc<Thread>> {
        let mut waiters = self.waiters.iter();
        let place = waiters.position(|(_, one)| core::ptr::eq(&**one, thread))?;
        Some(self.waiters.remove(place).1)
    }
}

/// All contended locks, hashed by their keys.
pub(super) struct Table([Vec<Lock>; BUCKETS]);

pub(super) static TABLE: Spin<Table> = Spin::new(Table([const { Vec::new() }; BUCKETS]));

/// The thread competes by another rank: those for whose locks it waits hear of it.
pub fn note_rank(thread: &Thread) {
    TABLE.lock().sort_in(thread);
}

impl Table {
    fn bucket(&mut self, key: Key) -> &mut Vec<Lock> {
        &mut self.0[key.bucket(BUCKETS)]
    }

    fn find(&self, key: Key) -> Option<&Lock> {
        let bucket = &self.0[key.bucket(BUCKETS)];
        bucket.iter().find(|lock| lock.key == key)
    }

    fn find_mut(&mut self, key: Key) -> Option<&mut Lock> {
        self.bucket(key).iter_mut().find(|lock| lock.key == key)
    }

    /// Who has the lock, if it is here.
    pub fn owner(&self, key: Key) -> Option<Arc<Thread>> {
        self.find(key).map(|lock| lock.owner.clone())
    }

    /// Whether the lock has an owner that its word does not name yet.
    pub fn is_unwritten(&self, key: Key) -> bool {
        self.find(key).is_some_and(|lock| lock.is_unwritten)
    }

    /// Who gets the lock next.
    pub fn next(&self, key: Key) -> Option<Arc<Thread>> {
        let (_, next) = self.find(key)?.waiters.first()?;
        Some(next.clone())
    }

    /// The thread of a number, if it can still have locks.
    pub fn living(&self, tid: u32) -> Result<Arc<Thread>> {
        let thread = find_thread(tid).ok_or(Error::NoSuchProcess)?;
        match thread.futex.pi.lock().has_ended {
            true => Err(Error::NoSuchProcess),
            false => Ok(thread.clone()),
        }
    }

    /// Whether `owner` waits, at last, for `thread`.
    fn is_circle(&self, thread: &Thread, owner: &Arc<Thread>) -> bool {
        let mut at = owner.clone();
        for _ in 0..DEPTH_MAX {
            if core::ptr::eq(&*at, thread) {
                return true;
            }
            let waits_for = at.futex.pi.lock().waits_for;
            let Some(lock) = waits_for.and_then(|key| self.find(key)) else {
                return false;
            };
            at = lock.owner.clone();
        }
        true
    }

    /// `thread` waits for the lock `key` of `owner`.
    ///
    /// Errors: `Deadlock`, `OutOfMemory`; then nothing has changed.
    pub fn wait(&mut self, thread: &Arc<Thread>, key: Key, owner: &Arc<Thread>) -> Result<()> {
        if self.is_circle(thread, owner) {
            return Err(Error::Deadlock);
        }
        // What it gets later takes no memory then.
        thread.futex.pi.lock().owned.make_room(1)?;
        match self.find_mut(key) {
            Some(lock) => lock.waiters.make_room(1)?,
            None => self.add(key, owner)?,
        }
        if let Some(lock) = self.find_mut(key) {
            lock.insert(thread.sched.class.rank(), thread.clone());
        }
        thread.futex.pi.lock().waits_for = Some(key);
        thread.futex.expect_wake();
        self.pass_on(key);
        Ok(())
    }

    /// A lock that is contended from now on, with room for one who waits.
    fn add(&mut self, key: Key, owner: &Arc<Thread>) -> Result<()> {
        let waiters = fallible::vec(1)?;
        // One for this, and one for what the owner may wait for itself.
        owner.futex.pi.lock().owned.make_room(2)?;
        let bucket = self.bucket(key);
        bucket.make_room(1)?;
        bucket.push(Lock {
            key,
            owner: owner.clone(),
            waiters,
            is_unwritten: false,
        });
        owner.futex.pi.lock().owned.push((key, Rank::FAIR));
        Ok(())
    }

    /// Lends the owner of `key` what it is to be lent, and whom that one waits for, and so on.
    fn pass_on(&mut self, mut key: Key) {
        for _ in 0..DEPTH_MAX {
            let Some(lock) = self.find(key) else { return };
            let owner = lock.owner.clone();
            owner.futex.pi.lock().note(key, lock.best());
            let before = owner.sched.class.rank();
            lend(&owner);
            let waits_for = owner.futex.pi.lock().waits_for;
            let Some(next) = waits_for.filter(|_| owner.sched.class.rank() != before) else {
                return;
            };
            self.sort_among(next, &owner);
            key = next;
        }
    }

    /// Puts one who waits for `key` where its rank belongs now.
    fn sort_among(&mut self, key: Key, thread: &Thread) {
        if let Some(lock) = self.find_mut(key)
            && let Some(thread) = lock.remove(thread)
        {
            lock.insert(thread.sched.class.rank(), thread);
        }
    }

    fn sort_in(&mut self, thread: &Thread) {
        let waits_for = thread.futex.pi.lock().waits_for;
        if let Some(key) = waits_for {
            self.sort_among(key, thread);
            self.pass_on(key);
        }
    }

    /// `thread` waits no longer; false if it has got the lock meanwhile.
    pub fn give_up(&mut self, thread: &Thread) -> bool {
        let Some(key) = thread.futex.pi.lock().waits_for.take() else {
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
        let is_over = |lock: &Lock| lock.waiters.is_empty() && !lock.is_unwritten;
        if self.find(key).is_some_and(is_over) {
            let bucket = self.bucket(key);
            let place = bucket.iter().position(|lock| lock.key == key);
            if let Some(lock) = place.map(|place| bucket.swap_remove(place)) {
                lock.owner.futex.pi.lock().forget(key);
                lend(&lock.owner);
            }
        }
    }

    /// The lock goes from `owner` to the best of those who wait, if any does, who finds it in
    /// its word or has to write itself there.
    pub fn hand_over(&mut self, key: Key, owner: &Thread, is_unwritten: bool) {
        let Some(lock) = self
            .find_mut(key)
            .filter(|lock| core::ptr::eq(&*lock.owner, owner))
        else {
            return;
        };
        lock.is_unwritten = is_unwritten && !lock.waiters.is_empty();
        if !lock.waiters.is_empty() {
            let (_, next) = lock.waiters.remove(0);
            let best = lock.best();
            lock.owner = next.clone();
            let mut share = next.futex.pi.lock();
            share.waits_for = None;
            // It made room before it waited.
            share.owned.push((key, best));
            drop(share);
            owner.futex.pi.lock().forget(key);
            lend(&next);
            lend(owner);
            next.futex.wake(&next);
        }
        self.settle(key);
    }

    /// Writes the number of `me` into the word of the lock that it got from a dead one.
    pub fn write_number(&mut self, address: VirtAddr, me: &Thread) -> Seen<()> {
        let Some(key) = self.unwritten_of(me) else {
            return Ok(());
        };
        loop {
            let seen = word::load(address)?;
            if word::exchange(address, seen, OWNER_DIED | WAITERS | me.id())? {
                break;
            }
        }
        if let Some(lock) = self.find_mut(key) {
            lock.is_unwritten = false;
        }
        self.settle(key);
        Ok(())
    }

    fn unwritten_of(&self, me: &Thread) -> Option<Key> {
        let share = me.futex.pi.lock();
        let mut owned = share.owned.iter().map(|(key, _)| *key);
        owned.find(|key| self.is_unwritten(*key))
    }

    /// The same if the word is not there: the next one has to.
    pub fn release_unwritten(&mut self, me: &Thread) {
        if let Some(key) = self.unwritten_of(me) {
            self.hand_over(key, me, true);
        }
    }

    /// Hands one lock over that a dying thread has; false if it has none any more, and, if it
    /// `is_last`, gets none.
    pub fn release_one(&mut self, me: &Thread, is_last: bool) -> bool {
        let mut share = me.futex.pi.lock();
        let Some((key, _)) = share.owned.pop() else {
            share.has_ended = is_last;
            return false;
        };
        drop(share);
        self.hand_over(key, me, true);
        true
    }
}

/// Lends a thread the best rank that waits for anything of its own.
fn lend(thread: &Thread) {
    let best = thread.futex.pi.lock().best();
    sched::lend(thread, best);
}
