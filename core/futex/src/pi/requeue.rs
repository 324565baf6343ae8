//! From a condition variable to its lock (FUTEX_WAIT_REQUEUE_PI, FUTEX_CMP_REQUEUE_PI).
//!
//! Who waits for the condition says for which lock it will wait then. Who signals moves waiters
//! to that lock, or gives it to the first of them if it is free; so a waiter returns with
//! the lock in its hands.

use alloc::sync::Arc;

use base::lock::Lock as _;

use super::{Locks, OWNER_DIED, TID_MASK, WAITERS, exchange};
use crate::bucket::Bucket;
use crate::host::{Host, Thread, Word};
use crate::table::until_woken;
use crate::{BATCH_WAITERS, Key, MATCH_ANY, Refusal, Stop, Table};

/// A word of a program's, and its key.
#[derive(Clone, Copy, Debug)]
pub struct Place<W> {
    /// What it is known by.
    pub key: Key,
    /// Where it is.
    pub word: W,
}

/// How the sleep of [`Table::sleep_for_requeue`] ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Moved<R> {
    /// The thread has the lock; [`Table::write_number`] comes next.
    HasLock,
    /// It waited for the condition, for this reason no longer.
    NotYet(R),
    /// It waited for the lock already, for this reason no longer.
    GaveUpLock(R),
}

impl<H: Host, const BUCKETS: usize> Table<H, BUCKETS> {
    /// Puts `me` among the waiters of `from`, which holds `expected`, from where it is to be moved
    /// to the lock `to`.
    pub fn enqueue_for_requeue<W: Word>(
        &self,
        me: Arc<H::Thread>,
        from: &Place<W>,
        expected: u32,
        to: Key,
    ) -> Result<(), Stop<W::Fault>> {
        self.enter(me, (from.key, MATCH_ANY, Some(to)), &from.word, expected)
    }

    /// Sleeps until somebody has moved `me` from `from` and until it has the lock. `park` is as
    /// for [`Table::sleep`].
    pub fn sleep_for_requeue<R>(
        &self,
        me: &H::Thread,
        from: Key,
        park: impl FnMut() -> Result<(), R>,
    ) -> Moved<R> {
        let Err(reason) = until_woken(me, park) else {
            return Moved::HasLock;
        };
        if self.bucket(from).remove(me) {
            return Moved::NotYet(reason);
        }
        // It was moved, or has the lock.
        match self.pi.lock().give_up(me) {
            true => Moved::GaveUpLock(reason),
            false => Moved::HasLock,
        }
    }

    /// Moves up to `limit` waiters from `from` to the lock `to`, if the word of `from` holds
    /// `expected`. `moved` counts them, and says after a fault where to go on.
    pub fn requeue_pi<W: Word>(
        &self,
        from: &Place<W>,
        expected: u32,
        to: &Place<W>,
        limit: usize,
        moved: &mut usize,
    ) -> Result<(), Stop<W::Fault>> {
        while *moved < limit {
            let mut bucket = self.bucket(from.key);
            if *moved == 0 && from.word.load().map_err(Stop::Fault)? != expected {
                return Err(Refusal::Changed.into());
            }
            let batch = (limit - *moved).min(BATCH_WAITERS);
            let outcome = self.pi.lock().take_over(&mut bucket, from.key, to, batch);
            drop(bucket);
            let more = match outcome {
                Err(Stop::Refused(_)) if *moved != 0 => break,
                other => other?,
            };
            *moved += more;
            if more < batch {
                break;
            }
            H::resched_point();
        }
        Ok(())
    }
}

impl<H: Host, const BUCKETS: usize> Locks<H, BUCKETS> {
    /// Moves up to `batch` waiters of `from` to the lock `to`; returns how many.
    fn take_over<W: Word>(
        &mut self,
        bucket: &mut Bucket<H>,
        from: Key,
        to: &Place<W>,
        batch: usize,
    ) -> Result<usize, Stop<W::Fault>> {
        for moved in 0..batch {
            let Some((thread, target)) = bucket.first(from) else {
                return Ok(moved);
            };
            let outcome = match target == Some(to.key) {
                true => self.move_one(&thread, to),
                false => Err(Refusal::Inconsistent.into()),
            };
            match outcome {
                Ok(()) => drop(bucket.remove(&thread)),
                Err(_) if moved != 0 => return Ok(moved),
                Err(why) => return Err(why),
            }
        }
        Ok(batch)
    }

    /// Gives `thread` the lock, or lets it wait for it.
    fn move_one<W: Word>(
        &mut self,
        thread: &Arc<H::Thread>,
        to: &Place<W>,
    ) -> Result<(), Stop<W::Fault>> {
        loop {
            let seen = to.word.load().map_err(Stop::Fault)?;
            if seen & TID_MASK == thread.id() {
                return Err(Refusal::Deadlock.into());
            }
            let Some(owner) = self.owner_of(to.key, seen)? else {
                // Others may be moved behind it.
                let new = seen & OWNER_DIED | thread.id() | WAITERS;
                if exchange(&to.word, seen, new)? {
                    thread.waiter().wake(thread);
                    return Ok(());
                }
                continue;
            };
            if exchange(&to.word, seen, seen | WAITERS)? {
                return Ok(self.wait(thread, to.key, &owner)?);
            }
        }
    }
}
