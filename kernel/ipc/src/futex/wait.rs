//! Waiting and waking.

use ::futex::Stop;
use base::Instant;
use mm::Access;
use sched::Mstate;
use sync::{Error, Restart, Result};
use task::{Thread, current};

use super::word::{Place, repeat};
use super::{Key, Operation, TABLE};

/// Waits until somebody wakes the word, which holds `expected`.
///
/// Errors: `WouldBlock` if it holds something else, `TimedOut` at `deadline`,
/// `Interrupted` by a signal, `BadAddress`.
pub fn wait(place: Place, expected: u32, bits: u32, deadline: Instant) -> Result<()> {
    let me = current();
    let enqueue = || TABLE.enqueue(me.arc(), place.key, &place.word, expected, bits);
    match repeat(Access::Read, enqueue) {
        // Programs know no such error; they do know to be woken for nothing (futex(2)).
        Err(Error::OutOfMemory) => {
            sched::yield_now();
            return Ok(());
        }
        other => other?,
    }
    TABLE.sleep(&me, || park(&me, deadline))
}

/// Parks the current thread once; an error says why its wait is over.
pub(super) fn park(me: &Thread, deadline: Instant) -> Result<()> {
    if me.has_deliverable_signal() {
        return Err(Error::Interrupted(Restart::IfAsked));
    }
    match sched::in_mstate(Mstate::Lock, || sched::park_until(deadline)) {
        true => Ok(()),
        false => Err(Error::TimedOut),
    }
}

/// Wakes up to `count` waiters that match `bits`; returns how many.
pub fn wake(key: Key, bits: u32, count: usize) -> usize {
    TABLE.wake(key, bits, count)
}

/// Wakes up to `wake_count` waiters of `from` and moves up to `move_count` others to
/// `to`; returns (woken, moved).
///
/// Errors: `WouldBlock` if `from` does not hold what is `expected`.
pub fn requeue(
    from: Place,
    to: Key,
    wake_count: usize,
    move_count: usize,
    expected: Option<u32>,
) -> Result<(usize, usize)> {
    let check = expected.map(|value| (&from.word, value));
    repeat(Access::Read, || {
        TABLE.requeue((from.key, to), (wake_count, move_count), check)
    })
}

/// Changes the word `second`, wakes up to `count` waiters of `first`, and up to `second_count` of
/// `second` if the old value passes the test; returns how many.
pub fn wake_op(
    first: Key,
    second: Place,
    operation: &Operation,
    count: usize,
    second_count: usize,
) -> Result<usize> {
    let (keys, counts) = ((first, second.key), (count, second_count));
    repeat(Access::Write, || {
        let woken = TABLE.wake_op(keys, &second.word, operation, counts);
        woken.map_err(Stop::Fault)
    })
}
