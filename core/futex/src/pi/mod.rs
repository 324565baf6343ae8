//! Locks with priority inheritance (futex(2), FUTEX_LOCK_PI).
//!
//! The word of such a lock holds its owner's number, 0 if there is none; [`WAITERS`] says that
//! the owner must let the kernel unlock, [`OWNER_DIED`] that the one before died with the lock.
//! Who finds it taken waits here, the best rank first, and the owner is *lent* the best rank of
//! all who wait for any lock of its own ([`Thread::lend`]). If the owner waits for a lock itself,
//! it lends that one's owner what it was lent, and so on ([`Locks`]).
//!
//! A lock is handed over: whoever unlocks writes the next owner's number into the word, so that
//! nobody comes between. If the owner dies, the next one writes its own, in its own address
//! space ([`Table::write_number`]).
//!
//! A word is read and changed under the lock of [`Locks`]. `requeue` moves who waits for a
//! condition variable to its lock.

mod lock;
mod locks;
mod requeue;

use alloc::sync::Arc;

use base::lock::Lock as _;

pub use locks::Locks;
pub use requeue::{Moved, Place};

use crate::host::{Host, Thread, Word};
use crate::table::until_woken;
use crate::{Key, Refusal, Stop, Table};

/// Somebody waits in the kernel (FUTEX_WAITERS).
pub const WAITERS: u32 = 0x8000_0000;
/// The last owner died with the lock (FUTEX_OWNER_DIED).
pub const OWNER_DIED: u32 = 0x4000_0000;
/// The owner's number.
pub const TID_MASK: u32 = 0x3fff_ffff;

/// What [`Table::lock_pi`] does while another has the lock.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Contended {
    /// The thread is queued, and is to sleep.
    Queue,
    /// It fails with [`Refusal::Taken`].
    Fail,
}

/// What became of an attempt.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Attempt {
    /// The lock is the thread's.
    Taken,
    /// It is queued: [`Table::sleep_for_lock`] comes next.
    Queued,
}

impl<H: Host, const BUCKETS: usize> Table<H, BUCKETS> {
    /// Takes the lock in `word` for `me`, or queues `me` for it.
    pub fn lock_pi<W: Word>(
        &self,
        me: &Arc<H::Thread>,
        key: Key,
        word: &W,
        contended: Contended,
    ) -> Result<Attempt, Stop<W::Fault>> {
        let mut locks = self.pi.lock();
        let Some(owner) = locks.look(word, key, me)? else {
            return Ok(Attempt::Taken);
        };
        if contended == Contended::Fail {
            return Err(Refusal::Taken.into());
        }
        locks.wait(me, key, &owner)?;
        Ok(Attempt::Queued)
    }

    /// Sleeps until `me` has the lock for which it is queued; [`Table::write_number`] comes next.
    /// `park` is as for [`Table::sleep`].
    pub fn sleep_for_lock<R>(
        &self,
        me: &H::Thread,
        park: impl FnMut() -> Result<(), R>,
    ) -> Result<(), R> {
        match until_woken(me, park) {
            Err(reason) if self.pi.lock().give_up(me) => Err(reason),
            _ => Ok(()),
        }
    }

    /// Writes the number of `me` into the word of a lock that it got from a dead one, if it did.
    pub fn write_number<W: Word>(&self, me: &H::Thread, word: &W) -> Result<(), W::Fault> {
        let mut locks = self.pi.lock();
        let Some(key) = locks.unwritten_of(me) else {
            return Ok(());
        };
        crate::replace::<H, W>(word, |_| OWNER_DIED | WAITERS | me.id())?;
        locks.note_written(key);
        Ok(())
    }

    /// The word of [`Table::write_number`] is not there: without it the lock is nobody's, and the
    /// next one may have it mapped.
    pub fn release_unwritten(&self, me: &H::Thread) {
        let mut locks = self.pi.lock();
        if let Some(key) = locks.unwritten_of(me) {
            locks.hand_over(key, me, true);
        }
    }

    /// Gives up the lock in `word`, which goes to the first of those who wait.
    pub fn unlock_pi<W: Word>(
        &self,
        me: &H::Thread,
        key: Key,
        word: &W,
    ) -> Result<(), Stop<W::Fault>> {
        let mut locks = self.pi.lock();
        loop {
            let seen = word.load().map_err(Stop::Fault)?;
            if seen & TID_MASK != me.id() {
                return Err(Refusal::NotOwner.into());
            }
            let next = locks.next(key).map(|next| WAITERS | next.id());
            let owner = locks.owner(key);
            if next.is_some() && owner.is_none_or(|owner| !core::ptr::eq(&**owner, me)) {
                return Err(Refusal::Inconsistent.into());
            }
            if exchange(word, seen, next.unwrap_or(0))? {
                locks.hand_over(key, me, false);
                return Ok(());
            }
        }
    }

    /// The program of `me` ends, or is replaced: its locks go to those who wait for them. If it
    /// `is_last`, the thread ends and gets none any more.
    pub fn release_all(&self, me: &H::Thread, is_last: bool) {
        while self.pi.lock().release_one(me, is_last) {
            H::resched_point();
        }
    }

    /// The thread competes by another rank: those for whose locks it waits hear of it.
    pub fn note_rank(&self, thread: &H::Thread) {
        self.pi.lock().note_rank(thread);
    }
}

impl<H: Host, const BUCKETS: usize> Locks<H, BUCKETS> {
    /// Takes the lock for `who`, or tells who has it, after marking that somebody waits.
    fn look<W: Word>(
        &self,
        word: &W,
        key: Key,
        who: &H::Thread,
    ) -> Result<Option<Arc<H::Thread>>, Stop<W::Fault>> {
        loop {
            let seen = word.load().map_err(Stop::Fault)?;
            if seen & TID_MASK == who.id() {
                return Err(Refusal::Deadlock.into());
            }
            let owner = self.owner_of(key, seen)?;
            let new = match owner {
                None => seen & OWNER_DIED | who.id(),
                Some(_) => seen | WAITERS,
            };
            if exchange(word, seen, new)? {
                return Ok(owner);
            }
        }
    }

    /// Whose the lock is: of those who wait for it, or by what its word says.
    fn owner_of(&self, key: Key, seen: u32) -> Result<Option<Arc<H::Thread>>, Refusal> {
        if let Some(owner) = self.owner(key) {
            let agrees = seen & TID_MASK == owner.id() || self.is_unwritten(key);
            return match agrees {
                true => Ok(Some(owner.clone())),
                false => Err(Refusal::Inconsistent),
            };
        }
        if seen & TID_MASK == 0 {
            return Ok(None);
        }
        let owner = H::find(seen & TID_MASK).ok_or(Refusal::NoOwner)?;
        match owner.waiter().pi.lock().has_ended {
            true => Err(Refusal::NoOwner),
            false => Ok(Some(owner.clone())),
        }
    }
}

/// Changes the word if it still holds `old`; whether it did.
fn exchange<W: Word>(word: &W, old: u32, new: u32) -> Result<bool, Stop<W::Fault>> {
    let seen = word.compare_exchange(old, new).map_err(Stop::Fault)?;
    Ok(seen == old)
}
