//! One address space, as the TLBs see it.

use core::num::NonZeroU64;
use core::sync::atomic::Ordering::Relaxed;

use base::{Atomics, CpuId, CpuSet, SharedCpuSet};

/// The pages `[first, first + count)` lost rights; `first` is the address of a page.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Pages {
    /// Address of the first page.
    pub first: u64,
    /// How many.
    pub count: u64,
}

/// One page table to the TLBs.
#[derive(Debug)]
pub struct Space<A: Atomics> {
    pub(crate) number: u64,
    /// Physical address of the table's root.
    pub(crate) root: u64,
    /// Grows after each change that takes something away.
    pub(crate) generation: A::Word,
    /// CPUs that ever loaded the table.
    cpus: SharedCpuSet<A>,
}

impl<A: Atomics> Space<A> {
    /// A space whose table starts at the physical address `root`. `number`, below 2^63, is never
    /// used for another one: CPUs may remember it longer than the space lives.
    pub fn new(number: NonZeroU64, root: u64) -> Self {
        Self {
            number: number.get(),
            root,
            generation: A::Word::default(),
            cpus: SharedCpuSet::default(),
        }
    }

    /// Adds a CPU to those that ever loaded the table.
    #[inline(always)]
    pub(crate) fn note_cpu(&self, me: CpuId) {
        if !self.cpus.contains(me, Relaxed) {
            self.cpus.insert(me, Relaxed);
        }
    }

    /// CPUs other than `me` that ever loaded the table.
    #[inline(always)]
    pub(crate) fn others(&self, me: CpuId) -> CpuSet {
        self.cpus.load(Relaxed) - CpuSet::one(me)
    }
}
