//! From a condition variable to its lock (FUTEX_WAIT_REQUEUE_PI, FUTEX_CMP_REQUEUE_PI).
//!
//! Who waits for the condition says for which lock it will wait then. Who signals moves waiters
//! to that lock, or gives it to the first of them if it is free; so a waiter returns with
//! the lock in its hands.

use alloc::sync::Arc;

use base::{Instant, VirtAddr};

use super::table::{TABLE, Table};
use super::word::{self, OWNER_DIED, Seen, Stop, TID_MASK, WAITERS};
use super::write_own_number;
use crate::error::{Error, Restart, Result};
use crate::futex::table::{self, Bucket};
use crate::futex::{Key, MATCH_ANY, wait};
use crate::mm::Access;
use crate::sched::{self, Mstate};
use crate::task::{Thread, current};
use crate::user;

/// Waiters that are moved under one hold of the locks.
const BATCH_WAITERS: usize = 64;

/// A word of the program's, and its key.
#[derive(Clone, Copy, Debug)]
pub struct Word {
    /// Where it is.
    pub address: VirtAddr,
    /// What it is known by.
    pub key: Key,
}

/// Waits until somebody moves the current thread from `from`, which holds `expected`, to the lock
/// `to`, and until it has that.
///
/// Errors: as [`wait`](crate::futex::wait) and [`lock`](super::lock); `WouldBlock` if a signal
/// comes while it waits for the lock.
pub fn wait_for_requeue(from: Word, expected: u32, to: Word, deadline: Instant) -> Result<()> {
    let me = current();
    wait::enqueue(from.address, from.key, expected, MATCH_ANY, Some(to.key))?;
    let reason = loop {
        if me.futex.is_woken() {
            return write_own_number(to.address);
        }
        if me.has_deliverable_signal() {
            break Error::Interrupted(Restart::IfAsked);
        }
        if !sched::in_mstate(Mstate::Lock, || sched::park_until(deadline)) {
            break Error::TimedOut;
        }
    };
    if table::lock(from.key).remove(&me) {
        return Err(reason);
    }
    // It was moved, or has the lock.
    match (TABLE.lock().give_up(&me), reason) {
        (false, _) => write_own_number(to.address),
        (true, Error::TimedOut) => Err(Error::TimedOut),
        (true, _) => Err(Error::WouldBlock),
    }
}

/// Moves up to `count` waiters and one more from `from` to the lock `to`, if the word of `from`
/// holds `expected`; returns how many.
///
/// Errors: `WouldBlock` if it does not, `Invalid` for waiters of another kind or for another
/// lock, and as [`lock`](super::lock).
pub fn cmp_requeue(from: Word, expected: u32, to: Word, count: usize) -> Result<usize> {
    let limit = count.saturating_add(1);
    let mut moved = 0;
    let mut is_checked = false;
    while moved < limit {
        let mut bucket = table::lock(from.key);
        let batch = (limit - moved).min(BATCH_WAITERS);
        let outcome = check(from.address, expected, is_checked)
            .and_then(|()| TABLE.lock().take_over(&mut bucket, from.key, to, batch));
        drop(bucket);
        match outcome {
            Ok(more) => {
                moved += more;
                is_checked = true;
                if more < batch {
                    break;
                }
            }
            Err(Stop::Refused(_)) if moved != 0 => break,
            Err(Stop::Refused(error)) => return Err(error),
            Err(Stop::Fault(fault)) => user::resolve(fault.addr, Access::Write)?,
        }
        sched::resched_point();
    }
    Ok(moved)
}

fn check(address: VirtAddr, expected: u32, is_checked: bool) -> Seen<()> {
    match is_checked || word::load(address)? == expected {
        true => Ok(()),
        false => Err(Error::WouldBlock.into()),
    }
}

impl Table {
    /// Moves up to `batch` waiters of `from` to the lock `to`; returns how many.
    fn take_over(&mut self, bucket: &mut Bucket, from: Key, to: Word, batch: usize) -> Seen<usize> {
        for moved in 0..batch {
            let Some((thread, target)) = bucket.first(from) else {
                return Ok(moved);
            };
            if target != Some(to.key) {
                return Err(Error::Invalid.into());
            }
            match self.move_one(&thread, to) {
                Ok(()) => drop(bucket.remove(&thread)),
                Err(_) if moved != 0 => return Ok(moved),
                Err(why) => return Err(why),
            }
        }
        Ok(batch)
    }

    /// Gives `thread` the lock, or lets it wait for it.
    fn move_one(&mut self, thread: &Arc<Thread>, to: Word) -> Seen<()> {
        loop {
            let seen = word::load(to.address)?;
            if seen & TID_MASK == thread.id() {
                return Err(Error::Deadlock.into());
            }
            let Some(owner) = self.owner_of(to.key, seen)? else {
                // Others may be moved behind it.
                let new = seen & OWNER_DIED | thread.id() | WAITERS;
                if word::exchange(to.address, seen, new)? {
                    thread.futex.wake(thread);
                    return Ok(());
                }
                continue;
            };
            if word::exchange(to.address, seen, seen | WAITERS)? {
                return Ok(self.wait(thread, to.key, &owner)?);
            }
        }
    }
}
