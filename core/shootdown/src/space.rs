//! One address space, as the TLBs see it.

use core::num::NonZeroU64;
use core::sync::atomic::Ordering::Relaxed;

use base::CpuId;

use crate::{Atomics, Word};

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
    cpus: A::Word,
}

impl<A: Atomics> Space<A> {
    /// A space whose table starts at the physical address `root`. `number`, below 2^63, is never
    /// used for another one: CPUs may remember it longer than the space lives.
    pub fn new(number: NonZeroU64, root: u64) -> Self {
        Self {
            number: number.get(),
            root,
            generation: A::Word::default(),
            cpus: A::Word::default(),
        }
    }

    /// Adds a CPU to those that ever loaded the table.
    #[inline(always)]
    pub(crate) fn note_cpu(&self, me: CpuId) {
        if self.cpus.load(Relaxed) & bit(me) == 0 {
            self.cpus.fetch_or(bit(me), Relaxed);
        }
    }

    /// CPUs other than `me` that ever loaded the table.
    #[inline(always)]
    pub(crate) fn others(&self, me: CpuId) -> u64 {
        self.cpus.load(Relaxed) & !bit(me)
    }
}

/// `cpu` as a set.
#[inline(always)]
pub(crate) fn bit(cpu: CpuId) -> u64 {
    1 << cpu.0
}

/// The members of `set` for which `keep` holds.
pub(crate) fn subset(set: u64, keep: impl Fn(&CpuId) -> bool) -> u64 {
    members(set).filter(keep).fold(0, |kept, id| kept | bit(id))
}

/// The members of a set.
pub(crate) fn members(mut set: u64) -> impl Iterator<Item = CpuId> {
    core::iter::from_fn(move || {
        let first = (set != 0).then(|| CpuId(set.trailing_zeros()));
        set &= set.wrapping_sub(1);
        first
    })
}
