//! Waiting and waking.

use base::{Instant, VirtAddr};
use mach::mem;

use super::table::{self, Pair, give_up};
use super::{Key, MATCH_ANY};
use crate::error::{Error, Restart, Result};
use crate::mm::Access;
use crate::sched::{self, Mstate};
use crate::task::current;
use crate::user;

/// Waiters that are woken or moved under one hold of the lock.
const BATCH_WAITERS: usize = 64;

/// Waits until somebody wakes the word `key` at `address`, which holds `expected`.
///
/// Errors: `WouldBlock` if it holds something else, `TimedOut` at `deadline`,
/// `Interrupted` by a signal, `BadAddress`.
pub fn wait(
    address: VirtAddr,
    key: Key,
    expected: u32,
    bits: u32,
    deadline: Instant,
) -> Result<()> {
    match enqueue(address, key, expected, bits, None) {
        // Programs know no such error; they do know to be woken for nothing (futex(2)).
        Err(Error::OutOfMemory) => {
            sched::yield_now();
            return Ok(());
        }
        other => other?,
    }
    let me = current();
    loop {
        if me.futex.is_woken() {
            return Ok(());
        }
        let reason = if me.has_deliverable_signal() {
            Error::Interrupted(Restart::IfAsked)
        } else if sched::in_mstate(Mstate::Lock, || sched::park_until(deadline)) {
            continue;
        } else {
            Error::TimedOut
        };
        return if give_up(&me) { Err(reason) } else { Ok(()) };
    }
}

/// Puts the current thread among the waiters of a word that holds `expected`; with `target` it
/// is to be moved to that lock and not to be woken.
pub(super) fn enqueue(
    address: VirtAddr,
    key: Key,
    expected: u32,
    bits: u32,
    target: Option<Key>,
) -> Result<()> {
    loop {
        let mut bucket = table::lock(key);
        match mem::load_user_u32(address) {
            Ok(value) if value == expected => {
                return bucket.add(key, bits, target, current().arc());
            }
            Ok(_) => return Err(Error::WouldBlock),
            Err(fault) => {
                drop(bucket);
                user::resolve(fault.addr, Access::Read)?;
            }
        }
    }
}

/// Wakes up to `count` waiters that match `bits`; returns how many.
pub fn wake(key: Key, bits: u32, count: usize) -> usize {
    // Who comes while the lock is let go is not woken.
    let all = table::lock(key).count(key, bits).min(count);
    let mut woken = 0;
    while woken < all {
        let batch = (all - woken).min(BATCH_WAITERS);
        let more = table::lock(key).wake(key, bits, batch);
        if more == 0 {
            break;
        }
        woken += more;
        sched::resched_point();
    }
    woken
}

/// Wakes up to `wake_count` waiters of `from` and moves up to `move_count` others to
/// `to`; returns (woken, moved).
///
/// Errors: `WouldBlock` if `check` (an address and what it must hold) does not hold.
pub fn requeue(
    from: Key,
    to: Key,
    wake_count: usize,
    move_count: usize,
    check: Option<(VirtAddr, u32)>,
) -> Result<(usize, usize)> {
    loop {
        let mut pair = Pair::lock(from, to);
        if let Some((address, expected)) = check {
            match mem::load_user_u32(address) {
                Ok(value) if value == expected => {}
                Ok(_) => return Err(Error::WouldBlock),
                Err(fault) => {
                    drop(pair);
                    user::resolve(fault.addr, Access::Read)?;
                    continue;
                }
            }
        }
        let woken = pair
            .one()
            .wake(from, MATCH_ANY, wake_count.min(BATCH_WAITERS));
        let moved = match from == to {
            true => 0,
            false => pair.requeue(from, to, move_count.min(BATCH_WAITERS)),
        };
        drop(pair);
        if woken < BATCH_WAITERS && moved < BATCH_WAITERS {
            return Ok((woken, moved));
        }
        let woken = woken + wake(from, MATCH_ANY, wake_count - woken);
        let moved = match from == to {
            true => 0,
            false => moved + move_rest(from, to, move_count - moved),
        };
        return Ok((woken, moved));
    }
}

/// Moves up to `count` waiters more, in batches.
fn move_rest(from: Key, to: Key, count: usize) -> usize {
    let mut moved = 0;
    while moved < count {
        sched::resched_point();
        let batch = (count - moved).min(BATCH_WAITERS);
        let more = Pair::lock(from, to).requeue(from, to, batch);
        moved += more;
        if more < batch {
            break;
        }
    }
    moved
}

/// The change of a word and the test of its old value that `FUTEX_WAKE_OP` asks for.
#[derive(Clone, Copy, Debug)]
pub struct Operation {
    /// The new value from the old one.
    pub change: fn(old: u32, operand: u32) -> u32,
    /// For `change`.
    pub operand: u32,
    /// Whether the second wake-up takes place, by the old value.
    pub test: fn(old: u32, against: u32) -> bool,
    /// For `test`.
    pub against: u32,
}

/// Changes the word `second` at `address`, wakes up to `count` waiters of `first`, and
/// up to `second_count` of `second` if the old value passes the test; returns how many.
pub fn wake_with(
    first: Key,
    second: Key,
    address: VirtAddr,
    operation: Operation,
    count: usize,
    second_count: usize,
) -> Result<usize> {
    loop {
        let mut pair = Pair::lock(first, second);
        match exchange(address, |old| (operation.change)(old, operation.operand)) {
            Ok(old) => {
                let mut woken = pair.one().wake(first, MATCH_ANY, count);
                if (operation.test)(old, operation.against) {
                    woken += pair.two().wake(second, MATCH_ANY, second_count);
                }
                return Ok(woken);
            }
            Err(fault) => {
                drop(pair);
                user::resolve(fault.addr, Access::Write)?;
            }
        }
    }
}

/// Replaces a word of the program's atomically; returns the old value.
pub(super) fn exchange(
    address: VirtAddr,
    change: impl Fn(u32) -> u32,
) -> core::result::Result<u32, mem::Fault> {
    let mut old = mem::load_user_u32(address)?;
    loop {
        let seen = mem::compare_exchange_user_u32(address, old, change(old))?;
        if seen == old {
            return Ok(old);
        }
        old = seen;
        mach::cpu::relax();
    }
}
