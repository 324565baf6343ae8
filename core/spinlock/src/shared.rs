//! A lock that readers share, for what is looked at often and changed seldom.
//!
//! The problem: CPUs that only look at the same names or mounts need not exclude each other, but
//! a lock for one holder has each of them wait for all others.
//!
//! The idea: a reader counts itself in a *slot*, looks, and takes itself out: it waits for nobody
//! unless somebody changes something. A writer takes its `turn`, which is a lock as any other, marks
//! all slots, and waits until no reader is counted. A reader that finds its slot marked takes its
//! count back and waits for its turn too: so it waits for the writers that came before it and for
//! no others, and a writer for the readers that were inside.
//!
//! There is [`One`] slot where the lock is small and one of many; a slot [`PerCpu`] where there is one
//! lock for the whole machine: then readers do not even share a word.
//!
//! Invariants:
//! - **Marked**: slots are marked only by who has the `turn`, and it unmarks them before it gives
//!   that back. So who has the `turn` and is no writer finds no mark.
//! - **Counted**: a count beside a mark is of a reader that came before the mark, or of one that is
//!   about to take it back without having looked.
//!
//! A reader must not read once more meanwhile: a writer may have come between the two.

use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use base::CpuId;

use crate::{Counter, Family, Machine, Native, RawLock};

/// Somebody writes, or waits to do so.
const WRITER: u32 = 1 << 31;

/// Where readers count themselves.
pub trait Slots<F: Family> {
    /// The slot of readers on `cpu`.
    fn of(&self, cpu: impl FnOnce() -> CpuId) -> &F::Counter;

    /// All of them.
    fn all<'a>(&'a self) -> impl Iterator<Item = &'a F::Counter>
    where
        F: 'a;
}

/// One slot for all.
#[derive(Default, Debug)]
pub struct One<C>(C);

/// A slot for each of `CPUS` CPUs, in a cache line of its own.
#[derive(Debug)]
pub struct PerCpu<C, const CPUS: usize>([Line<C>; CPUS]);

#[derive(Default, Debug)]
#[repr(align(64))]
struct Line<C>(C);

impl One<<Native as Family>::Counter> {
    /// Nobody reads.
    pub const fn new() -> Self {
        Self(<Native as Family>::Counter::new(0))
    }
}

impl<const CPUS: usize> PerCpu<<Native as Family>::Counter, CPUS> {
    /// Nobody reads.
    pub const fn new() -> Self {
        Self([const { Line(<Native as Family>::Counter::new(0)) }; CPUS])
    }
}

impl<C: Default, const CPUS: usize> Default for PerCpu<C, CPUS> {
    fn default() -> Self {
        Self(core::array::from_fn(|_| Line::default()))
    }
}

impl<F: Family> Slots<F> for One<F::Counter> {
    #[inline(always)]
    fn of(&self, _cpu: impl FnOnce() -> CpuId) -> &F::Counter {
        &self.0
    }

    fn all<'a>(&'a self) -> impl Iterator<Item = &'a F::Counter>
    where
        F: 'a,
    {
        core::iter::once(&self.0)
    }
}

impl<F: Family, const CPUS: usize> Slots<F> for PerCpu<F::Counter, CPUS> {
    #[inline(always)]
    fn of(&self, cpu: impl FnOnce() -> CpuId) -> &F::Counter {
        // tidy: the machine has no CPU with a higher number.
        &self.0[cpu().index()].0
    }

    fn all<'a>(&'a self) -> impl Iterator<Item = &'a F::Counter>
    where
        F: 'a,
    {
        self.0.iter().map(|line| &line.0)
    }
}

/// A lock that readers share, without the data that it protects.
pub struct RawShared<F: Family, S> {
    turn: RawLock<F>,
    slots: S,
}

impl<F: Family, S: Default> Default for RawShared<F, S> {
    fn default() -> Self {
        Self {
            turn: RawLock::default(),
            slots: S::default(),
        }
    }
}

impl<S> RawShared<Native, S> {
    /// From slots in which nobody reads.
    pub const fn new(slots: S) -> Self {
        let turn = RawLock::new();
        Self { turn, slots }
    }
}

impl<F: Family, S: Slots<F>> RawShared<F, S> {
    /// Begins to read on this CPU, unless somebody writes.
    #[inline(always)]
    pub fn try_read(&self, cpu: impl FnOnce() -> CpuId) -> bool {
        let slot = self.slots.of(cpu);
        if slot.add(1, Acquire) & WRITER == 0 {
            return true;
        }
        slot.sub(1, Relaxed);
        false
    }

    /// Waits until nobody writes, and begins to read; returns after how many turns.
    pub fn wait_to_read<M: Machine<F>>(&self, machine: &M) -> u32 {
        let turns = self.take_turn(machine);
        self.slots.of(|| machine.me()).add(1, Acquire);
        self.turn.unlock();
        turns
    }

    /// Ends what [`Self::try_read`] or [`Self::wait_to_read`] began on this CPU.
    #[inline(always)]
    pub fn end_read(&self, cpu: impl FnOnce() -> CpuId) {
        self.slots.of(cpu).sub(1, Release);
    }

    /// Waits until nobody reads or writes, and begins to write; returns after how many turns.
    pub fn write<M: Machine<F>>(&self, machine: &M) -> u32 {
        let mut turns = self.take_turn(machine);
        for slot in self.slots.all() {
            slot.add(WRITER, Acquire);
        }
        for slot in self.slots.all() {
            // Acquires what each reader did before it ended.
            while slot.load(Acquire) != WRITER {
                turns = turns.saturating_add(machine.pause(turns));
            }
        }
        turns
    }

    /// Ends what [`Self::write`] began.
    pub fn end_write(&self) {
        for slot in self.slots.all() {
            slot.sub(WRITER, Release);
        }
        self.turn.unlock();
    }

    fn take_turn<M: Machine<F>>(&self, machine: &M) -> u32 {
        match self.turn.try_lock() {
            true => 0,
            // One turn at least: it had to wait.
            false => self.turn.wait(machine).max(1),
        }
    }

    /// Whether somebody writes, or waits to, at this moment.
    pub fn is_written(&self) -> bool {
        self.turn.is_locked()
    }
}
