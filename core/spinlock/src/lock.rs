//! The lock itself.

use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use core::sync::atomic::{AtomicU8, AtomicU16};

use base::{CPUS_MAX, CpuId};

use crate::{Family, Machine, Native, Small, Waiter};

/// Anybody may take the lock.
const FREE: u8 = 0;
/// Somebody has it.
const HELD: u8 = 1;
/// Only the first of the queue may take it.
const RESERVED: u8 = 2;

/// No CPU; others are named by one more than their number.
const NOBODY: u16 = 0;
const _: () = assert!(CPUS_MAX < u16::MAX as usize, "a name holds every CPU");

fn name(cpu: CpuId) -> u16 {
    cpu.0 as u16 + 1
}

fn named(name: u16) -> Option<CpuId> {
    let number = name.checked_sub(1)?;
    Some(CpuId(u32::from(number)))
}

/// A lock without the data that it protects.
#[derive(Debug)]
pub struct RawLock<F: Family> {
    state: F::Byte,
    /// What `state` becomes when the lock is given back: [`FREE`] or [`RESERVED`].
    after: F::Byte,
    /// The last of the queue.
    tail: F::Name,
}

impl<F: Family> Default for RawLock<F> {
    fn default() -> Self {
        Self {
            state: F::Byte::default(),
            after: F::Byte::default(),
            tail: F::Name::default(),
        }
    }
}

impl RawLock<Native> {
    /// An unlocked lock.
    pub const fn new() -> Self {
        Self {
            state: AtomicU8::new(FREE),
            after: AtomicU8::new(FREE),
            tail: AtomicU16::new(NOBODY),
        }
    }
}

impl<F: Family> RawLock<F> {
    /// Takes the lock if it is free and nobody has reserved it.
    #[inline(always)]
    pub fn try_lock(&self) -> bool {
        self.state.replace(FREE, HELD, Acquire)
    }

    /// Gives the lock back. Who calls it has it.
    #[inline(always)]
    pub fn unlock(&self) {
        self.state.store(self.after.load(Relaxed), Release);
    }

    /// Whether somebody has the lock at this moment.
    pub fn is_locked(&self) -> bool {
        self.state.load(Relaxed) == HELD
    }

    /// Waits for the lock; returns with it, and after how many turns.
    pub fn wait<M: Machine<F>>(&self, machine: &M) -> u32 {
        match self.try_for(machine.turns_before_queue(), machine) {
            Ok(turns) => turns,
            Err(turns) => turns.saturating_add(self.wait_in_queue(machine)),
        }
    }

    /// Tries for so many turns; after how many it had or had not the lock.
    fn try_for<M: Machine<F>>(&self, most: u32, machine: &M) -> Result<u32, u32> {
        let mut turns = 0_u32;
        while turns < most {
            if self.state.load(Relaxed) == FREE && self.try_lock() {
                return Ok(turns);
            }
            turns = turns.saturating_add(machine.pause(turns));
        }
        Err(turns)
    }

    fn wait_in_queue<M: Machine<F>>(&self, machine: &M) -> u32 {
        let me = machine.me();
        let own = machine.waiter(me);
        let mut turns = self.queue_up(me, own, machine);
        turns = turns.saturating_add(self.take_as_first(machine));
        self.leave(me, own, machine);
        turns
    }

    /// Returns when nobody stands before this CPU.
    fn queue_up<M: Machine<F>>(&self, me: CpuId, own: &Waiter<F>, machine: &M) -> u32 {
        own.next.store(NOBODY, Relaxed);
        own.is_first.store(0, Relaxed);
        let mut turns = 0_u32;
        // Releases the waiter to who comes behind, acquires the one before.
        if let Some(before) = named(self.tail.swap(name(me), AcqRel)) {
            machine.waiter(before).next.store(name(me), Release);
            while own.is_first.load(Acquire) == 0 {
                turns = turns.saturating_add(machine.pause(turns));
            }
        }
        turns
    }

    fn take_as_first<M: Machine<F>>(&self, machine: &M) -> u32 {
        let (mut turns, mut has_reserved) = (0_u32, false);
        loop {
            let state = self.state.load(Relaxed);
            if state != HELD && self.state.replace(state, HELD, Acquire) {
                if has_reserved {
                    self.after.store(FREE, Relaxed);
                }
                return turns;
            }
            if turns >= M::TURNS_UNTIL_RESERVED && !has_reserved {
                self.after.store(RESERVED, Relaxed);
                has_reserved = true;
            }
            turns = turns.saturating_add(machine.pause(turns));
        }
    }

    /// Makes the next one the first; this CPU has the lock.
    fn leave<M: Machine<F>>(&self, me: CpuId, own: &Waiter<F>, machine: &M) {
        if self.tail.replace(name(me), NOBODY, AcqRel) {
            return;
        }
        // Somebody is at the tail, and about to link itself.
        loop {
            if let Some(next) = named(own.next.load(Acquire)) {
                machine.waiter(next).is_first.store(1, Release);
                return;
            }
            machine.pause(0);
        }
    }
}
