//! Locks with priority inheritance (futex(2), FUTEX_LOCK_PI): `core/futex/src/pi`.

use ::futex::Stop;
use ::futex::pi::{Attempt, Contended, Moved};
use base::Instant;
use mm::Access;
use sync::{Error, Result};
use task::{Thread, current};

use super::TABLE;
use super::wait::park;
use super::word::{Place, UserWord, repeat};

/// What the caller of [`lock`] does while another has the lock.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LockWait {
    /// It waits until then.
    Until(Instant),
    /// It fails.
    None,
}

/// Takes the lock.
///
/// Errors: `Deadlock`, `NoSuchProcess` if the word names no thread, `Invalid` if it names another
/// than the owner, `WouldBlock` if it is not to wait, `TimedOut`, `Interrupted`, `OutOfMemory`,
/// `BadAddress`.
pub fn lock(place: Place, wait: LockWait) -> Result<()> {
    let me = current();
    let (contended, deadline) = match wait {
        LockWait::Until(deadline) => (Contended::Queue, deadline),
        LockWait::None => (Contended::Fail, Instant::NEVER),
    };
    match repeat(Access::Write, || {
        TABLE.lock_pi(&me.arc(), place.key, &place.word, contended)
    })? {
        Attempt::Taken => Ok(()),
        Attempt::Queued => {
            TABLE.sleep_for_lock(&me, || park(&me, deadline))?;
            write_number(place.word)
        }
    }
}

/// The current thread has got a lock; if its owner died, the word gets its number.
fn write_number(word: UserWord) -> Result<()> {
    let me = current();
    let written = repeat(Access::Write, || {
        TABLE.write_number(&me, &word).map_err(Stop::Fault)
    });
    if written.is_err() {
        TABLE.release_unwritten(&me);
    }
    written
}

/// Gives up the lock.
///
/// Errors: `NotPermitted` if the current thread has not got it, `BadAddress`.
pub fn unlock(place: Place) -> Result<()> {
    let me = current();
    repeat(Access::Write, || {
        TABLE.unlock_pi(&me, place.key, &place.word)
    })
}

/// Waits until somebody moves the current thread from `from`, which holds `expected`, to the lock
/// `to`, and until it has that.
///
/// Errors: as [`wait`](super::wait) and [`lock`]; `WouldBlock` if a signal comes while it waits
/// for the lock.
pub fn wait_for_requeue(from: Place, expected: u32, to: Place, deadline: Instant) -> Result<()> {
    let me = current();
    repeat(Access::Read, || {
        TABLE.enqueue_for_requeue(me.arc(), &from, expected, to.key)
    })?;
    match TABLE.sleep_for_requeue(&me, from.key, || park(&me, deadline)) {
        Moved::HasLock => write_number(to.word),
        Moved::NotYet(reason) => Err(reason),
        Moved::GaveUpLock(Error::TimedOut) => Err(Error::TimedOut),
        Moved::GaveUpLock(_) => Err(Error::WouldBlock),
    }
}

/// Moves up to `count` waiters and one more from `from` to the lock `to`, if the word of `from`
/// holds `expected`; returns how many.
///
/// Errors: `WouldBlock` if it does not, `Invalid` for waiters of another kind or for another
/// lock, and as [`lock`].
pub fn cmp_requeue(from: Place, expected: u32, to: Place, count: usize) -> Result<usize> {
    let limit = count.saturating_add(1);
    let mut moved = 0;
    repeat(Access::Write, || {
        TABLE.requeue_pi(&from, expected, &to, limit, &mut moved)
    })?;
    Ok(moved)
}

/// The current thread's program ends, or is replaced: its locks go to those who wait for them.
pub(super) fn release_all(me: &Thread, is_last: bool) {
    TABLE.release_all(me, is_last);
}

/// The thread competes by another rank: those for whose locks it waits hear of it.
pub fn note_rank(thread: &Thread) {
    TABLE.note_rank(thread);
}
