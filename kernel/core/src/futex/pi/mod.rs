//! Locks with priority inheritance (futex(2), FUTEX_LOCK_PI).
//!
//! The word of such a lock holds its owner's number, 0 if there is none; WAITERS says that the
//! owner must let the kernel unlock, OWNER_DIED that the one before died with the lock. Who
//! finds it taken waits here, the best rank first, and the owner is *lent* the best rank of all
//! who wait for any lock of its own (`sched::lend`). If the owner waits for a lock itself, it
//! lends that one's owner what it was lent, and so on ([`table`]).
//!
//! A lock is handed over: whoever unlocks writes the next owner's number into the word, so that
//! nobody comes between. If the owner dies, the next one writes its own, in its own address
//! space ([`Table::is_unwritten`]).
//!
//! Lock order: a bucket of plain waiters, then the one table of locks, which is a spin lock, then
//! run queues. A word is read and changed under the table's lock; if its page is missing, the lock is
//! dropped, the page is brought in and everything starts again.

mod requeue;
mod table;
mod word;

use alloc::sync::Arc;

use base::{Instant, VirtAddr};
use mach::sync::SpinGuard;

pub use requeue::{Word, cmp_requeue, wait_for_requeue};
pub use table::{Share, note_rank};
pub(super) use word::{OWNER_DIED, TID_MASK, WAITERS};

use self::table::{TABLE, Table};
use self::word::Seen;
use super::Key;
use crate::error::{Error, Restart, Result};
use crate::mm::Access;
use crate::sched::{self, Mstate};
use crate::task::{Thread, current};
use crate::user;

/// What the caller of [`lock`] does while another has the lock.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Patience {
    /// It waits until then.
    Until(Instant),
    /// It fails.
    None,
}

/// Takes the lock in the word `key` at `address`.
///
/// Errors: `Deadlock`, `NoSuchProcess` if the word names no thread, `Invalid` if it names another
/// than the owner, `WouldBlock` without patience, `TimedOut`, `Interrupted`, `OutOfMemory`,
/// `BadAddress`.
pub fn lock(address: VirtAddr, key: Key, patience: Patience) -> Result<()> {
    let me = current();
    match repeat(address, |table| {
        table.take_or_wait(address, key, &me.arc(), patience)
    })? {
        Taken::Yes => Ok(()),
        Taken::NotYet(deadline) => wait(address, deadline),
    }
}

/// What became of an attempt.
enum Taken {
    Yes,
    NotYet(Instant),
}

impl Table {
    fn take_or_wait(
        &mut self,
        address: VirtAddr,
        key: Key,
        me: &Arc<Thread>,
        patience: Patience,
    ) -> Seen<Taken> {
        let owner = match self.look(address, key, me)? {
            None => return Ok(Taken::Yes),
            Some(owner) => owner,
        };
        let Patience::Until(deadline) = patience else {
            return Err(Error::WouldBlock.into());
        };
        self.wait(me, key, &owner)?;
        Ok(Taken::NotYet(deadline))
    }

    /// Takes the lock for `who`, or tells who has it, after marking that somebody waits.
    fn look(
        &mut self,
        address: VirtAddr,
        key: Key,
        who: &Arc<Thread>,
    ) -> Seen<Option<Arc<Thread>>> {
        loop {
            let seen = word::load(address)?;
            if seen & TID_MASK == who.id() {
                return Err(Error::Deadlock.into());
            }
            let Some(owner) = self.owner_of(key, seen)? else {
                let new = seen & OWNER_DIED | who.id();
                if word::exchange(address, seen, new)? {
                    return Ok(None);
                }
                continue;
            };
            if word::exchange(address, seen, seen | WAITERS)? {
                return Ok(Some(owner));
            }
        }
    }

    /// Whose the lock is: of those who wait for it, or by what its word says.
    fn owner_of(&self, key: Key, seen: u32) -> Result<Option<Arc<Thread>>> {
        if let Some(owner) = self.owner(key) {
            let agrees = seen & TID_MASK == owner.id() || self.is_unwritten(key);
            return agrees.then_some(Some(owner)).ok_or(Error::Invalid);
        }
        if seen & TID_MASK == 0 {
            return Ok(None);
        }
        self.living(seen & TID_MASK).map(Some)
    }
}

/// Waits for what the current thread was queued for, whose word is at `address`.
fn wait(address: VirtAddr, deadline: Instant) -> Result<()> {
    let me = current();
    let reason = loop {
        if me.futex.is_woken() {
            break None;
        }
        if me.has_deliverable_signal() {
            break Some(Error::Interrupted(Restart::IfAsked));
        }
        if !sched::in_mstate(Mstate::Lock, || sched::park_until(deadline)) {
            break Some(Error::TimedOut);
        }
    };
    match reason.filter(|_| TABLE.lock().give_up(&me)) {
        Some(reason) => Err(reason),
        None => write_own_number(address),
    }
}

/// The current thread has got a lock whose owner died: the word gets its number.
fn write_own_number(address: VirtAddr) -> Result<()> {
    let me = current();
    let written = repeat(address, |table| table.write_number(address, &me));
    if written.is_err() {
        // Without its word it is nobody's; the next one may have it mapped.
        TABLE.lock().release_unwritten(&me);
    }
    written
}

/// Gives up the lock in the word `key` at `address`.
///
/// Errors: `NotPermitted` if the current thread has not got it, `BadAddress`.
pub fn unlock(address: VirtAddr, key: Key) -> Result<()> {
    let me = current();
    repeat(address, |table| table.unlock(address, key, &me))
}

impl Table {
    fn unlock(&mut self, address: VirtAddr, key: Key, me: &Thread) -> Seen<()> {
        loop {
            let seen = word::load(address)?;
            if seen & TID_MASK != me.id() {
                return Err(Error::NotPermitted.into());
            }
            let next = self.next(key);
            if next.is_some()
                && self
                    .owner(key)
                    .is_none_or(|owner| !core::ptr::eq(&*owner, me))
            {
                return Err(Error::Invalid.into());
            }
            let new = next.map_or(0, |next| WAITERS | next.id());
            if word::exchange(address, seen, new)? {
                self.hand_over(key, me, false);
                return Ok(());
            }
        }
    }
}

/// The current thread's program ends, or is replaced: its locks go to those who wait for them.
pub fn release_all(me: &Thread, is_last: bool) {
    while TABLE.lock().release_one(me, is_last) {
        sched::resched_point();
    }
}

/// Does something under the table's lock, and again after a page that was missing has come.
fn repeat<T>(address: VirtAddr, mut act: impl FnMut(&mut Table) -> Seen<T>) -> Result<T> {
    if address.0 & 3 != 0 {
        return Err(Error::Invalid);
    }
    loop {
        let mut table: SpinGuard<'_, Table> = TABLE.lock();
        let outcome = act(&mut table);
        drop(table);
        match outcome {
            Ok(value) => return Ok(value),
            Err(word::Stop::Refused(error)) => return Err(error),
            Err(word::Stop::Fault(fault)) => user::resolve(fault.addr, Access::Write)?,
        }
    }
}
