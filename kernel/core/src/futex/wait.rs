//! Waiting and waking.

use base::{Instant, VirtAddr};
use mach::mem;

use super::table::{self, Pair, give_up};
use super::{Key, MATCH_ANY};
use crate::error::{Error, Restart, Result};
use crate::mm::Access;
use crate::sched::{self, Errand};
use crate::task::current;
use crate::user;

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
    enqueue(address, key, expected, bits)?;
    let me = current();
    loop {
        if me.futex.is_woken() {
            return Ok(());
        }
        let reason = if me.has_deliverable_signal() {
            Error::Interrupted(Restart::IfAsked)
        } else if sched::on_errand(Errand::Lock, || sched::park_until(deadline)) {
            continue;
        } else {
            Error::TimedOut
        };
        return if give_up(&me) { Err(reason) } else { Ok(()) };
    }
}

fn enqueue(address: VirtAddr, key: Key, expected: u32, bits: u32) -> Result<()> {
    loop {
        let mut bucket = table::lock(key);
        match mem::load_user_u32(address) {
            Ok(value) if value == expected => {
                bucket.add(key, bits, current().arc());
                return Ok(());
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
    table::lock(key).wake(key, bits, count)
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
        let woken = pair.one().wake(from, MATCH_ANY, wake_count);
        let moved = if from == to {
            0
        } else {
            pair.requeue(from, to, move_count)
        };
        return Ok((woken, moved));
    }
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
