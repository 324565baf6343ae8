//! Which memory a device sees where: ranges of addresses, disjoint, each with what lies there.
//!
//! Sorted by address in one piece of memory: programs make few mappings, or many in ascending
//! order. Rules of type 1 v2: a range is mapped once, and goes as a whole.

use alloc::vec::{Drain, Vec};
use core::ops::{Range, RangeInclusive};

use base::{Memory, NoMemory};

use crate::IovaRange;

/// Mappings of a container (Linux's `dma_entry_limit`).
pub const MAPPINGS_MAX: usize = 65_535;

const PAGE_BYTES: u64 = 4096;
/// Where no program maps: writes to the first MiB are interrupts, which no page table leads elsewhere, and behind it is
/// [`KERNEL_WINDOW`].
const RESERVED: RangeInclusive<u64> = 0xfee0_0000..=0xfeff_ffff;
/// Where a device of a program's sees memory of the kernel's, if of any.
pub const KERNEL_WINDOW: Iova = Iova {
    first: 0xfef0_0000,
    last: *RESERVED.end(),
};

/// Whole pages of a device's addresses, one at least.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Iova {
    first: u64,
    last: u64,
}

impl Iova {
    /// `None` for what is empty, no whole pages, or beyond what an address can say.
    pub fn new(start: u64, bytes: u64) -> Option<Self> {
        let last = start.checked_add(bytes.checked_sub(1)?)?;
        let are_pages = (start | bytes).is_multiple_of(PAGE_BYTES);
        are_pages.then_some(Self { first: start, last })
    }

    /// All that there can be.
    pub const ALL: Self = Self {
        first: 0,
        last: u64::MAX,
    };

    /// The first address.
    pub fn start(&self) -> u64 {
        self.first
    }

    /// How many bytes; that of all addresses is one less than it is.
    pub fn bytes(&self) -> u64 {
        (self.last - self.first).saturating_add(1)
    }

    /// Whether a device whose tables end before `limit` can be led from here.
    pub fn is_usable(&self, limit: u64) -> bool {
        let is_reserved = self.first <= *RESERVED.end() && self.last >= *RESERVED.start();
        self.last < limit && !is_reserved
    }
}

/// What is usable before `limit`, in ascending order.
pub fn usable(limit: u64) -> [IovaRange; 2] {
    let (first, last) = (*RESERVED.start(), *RESERVED.end());
    [
        IovaRange {
            start: 0,
            end: first - 1,
        },
        IovaRange {
            start: last + 1,
            end: limit.saturating_sub(1),
        },
    ]
}

/// Why a mapping is refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Refusal {
    /// Something is mapped there.
    Overlaps,
    /// There are [`MAPPINGS_MAX`].
    TooMany,
    /// No memory for one more.
    Memory,
    /// It would take a part of a mapping.
    Splits,
}

impl From<NoMemory> for Refusal {
    fn from(_: NoMemory) -> Self {
        Self::Memory
    }
}

/// A container's mappings, each with what keeps its memory.
pub struct Mappings<T>(Vec<(Iova, T)>);

impl<T> Default for Mappings<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T> Mappings<T> {
    /// How many more there may be.
    pub fn available(&self) -> usize {
        MAPPINGS_MAX - self.0.len()
    }

    /// All of them, ascending.
    pub fn iter(&self) -> impl Iterator<Item = (Iova, &T)> {
        self.0.iter().map(|(iova, kept)| (*iova, kept))
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether `iova` may be mapped; if so, there is room for it.
    pub fn make_room<M: Memory>(&mut self, iova: Iova) -> Result<(), Refusal> {
        if !self.overlapping(iova).is_empty() {
            return Err(Refusal::Overlaps);
        }
        if self.available() == 0 {
            return Err(Refusal::TooMany);
        }
        M::reserve(|| self.0.try_reserve(1))?;
        Ok(())
    }

    /// Adds a mapping for which there is room.
    pub fn insert(&mut self, iova: Iova, kept: T) {
        let at = self.overlapping(iova).start;
        self.0.insert(at, (iova, kept));
    }

    /// Takes out the mappings of a range, which must not begin or end in the middle of one.
    pub fn take(&mut self, iova: Iova) -> Result<Drain<'_, (Iova, T)>, Refusal> {
        let found = self.overlapping(iova);
        let mut taken = self.0[found.clone()].iter();
        match taken.all(|(known, _)| known.first >= iova.first && known.last <= iova.last) {
            true => Ok(self.0.drain(found)),
            false => Err(Refusal::Splits),
        }
    }

    /// The places of those that overlap with `iova`.
    fn overlapping(&self, iova: Iova) -> Range<usize> {
        let start = self.0.partition_point(|(known, _)| known.last < iova.first);
        let end = self
            .0
            .partition_point(|(known, _)| known.first <= iova.last);
        start..end.max(start)
    }
}
