//! A CPU's place in a queue, and what the lock asks of the machine.

use core::sync::atomic::{AtomicU8, AtomicU16};

use base::CpuId;

use crate::{Family, Native};

/// The CPU's place in the queue of the lock for which it waits.
#[derive(Debug)]
#[repr(align(64))]
pub struct Waiter<F: Family> {
    /// Who stands behind it.
    pub(crate) next: F::Name,
    /// 1 once nobody stands before it.
    pub(crate) is_first: F::Byte,
}

impl<F: Family> Default for Waiter<F> {
    fn default() -> Self {
        Self {
            next: F::Name::default(),
            is_first: F::Byte::default(),
        }
    }
}

impl Waiter<Native> {
    /// Of a CPU that does not wait.
    pub const fn new() -> Self {
        Self {
            next: AtomicU16::new(0),
            is_first: AtomicU8::new(0),
        }
    }
}

/// The machine, for a CPU that waits.
pub trait Machine<F: Family> {
    /// How often the first of a queue looks at the lock until nobody may overtake it.
    const TURNS_UNTIL_RESERVED: u32;

    /// How often a CPU tries for the lock before it queues. 0 where CPUs are always run; where
    /// the host may stop one, so often that only who would starve comes to the queue.
    fn turns_before_queue(&self) -> u32;

    /// The CPU that runs this.
    fn me(&self) -> CpuId;

    /// The place of a CPU that runs. Each has one.
    fn waiter(&self, cpu: CpuId) -> &Waiter<F>;

    /// Lets time pass in a loop that has made so many turns; returns how many more it was worth, one at least.
    /// Takes no lock.
    fn pause(&self, turns: u32) -> u32;
}
