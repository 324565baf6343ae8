//! Who reaches memory for devices, where an IOMMU translates.
//!
//! Each piece of memory says for whom it is ([`DmaMemory`]). Whoever drives the IOMMUs is
//! told before a device hears of the memory, and again before the memory becomes
//! somebody else's; devices see it where it lies. Without an IOMMU nobody is told, and every
//! device reaches everything.

use base::{PAGE_BYTES, PhysAddr};
use frames::{Extent, FrameNo};
use hal::pci::PciAddress;

use crate::sync::Once;

/// RAM for devices, by those that it is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DmaMemory {
    /// For what no IOMMU stands before: the IOMMUs themselves, and devices that are on no bus.
    Untranslated,
    /// For all functions that the kernel drives: packets pass from card to card.
    Shared,
    /// For one function.
    Of(PciAddress),
}

/// Why memory was not mapped.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NotMapped {
    /// There is no memory for tables, or it is mapped already. Nothing has changed.
    Refused,
    /// Some may reach it all the same until it is unmapped.
    Reachable,
}

/// What drives the IOMMUs.
pub trait DmaMapper: Sync {
    /// Lets those that `memory` is for reach `bytes` bytes from `start` on.
    fn map(&self, memory: DmaMemory, start: PhysAddr, bytes: usize) -> Result<(), NotMapped>;

    /// Takes that back. False if some may still reach it.
    fn unmap(&self, memory: DmaMemory, start: PhysAddr, bytes: usize) -> bool;
}

/// Said once at boot: memory is asked for without knowing who translates.
static MAPPER: Once<&'static dyn DmaMapper> = Once::new();

/// From now on a device reaches only what `mapper` maps for it. Once.
pub fn remap_by(mapper: &'static dyn DmaMapper) {
    MAPPER.call_once(|| mapper);
}

/// Whether a device reaches any memory by its physical address.
pub(super) fn reaches_all() -> bool {
    MAPPER.get().is_none()
}

/// Bits of a claim above the first frame's number, which has fewer: the function, and the kind.
const FUNCTION_SHIFT: u32 = 44;
const KIND_SHIFT: u32 = 60;
const UNTRANSLATED: usize = 0;
const SHARED: usize = 1;
const OF_ONE: usize = 2;

impl DmaMemory {
    /// Maps frames for those that they are for. Where that cannot be they are given back,
    /// unless some may reach them for good.
    pub(super) fn map(self, extent: Extent, give_back: impl FnOnce(Extent)) -> Option<Extent> {
        let (start, bytes) = (extent.base(), extent.bytes());
        let mapper = self.mapper();
        if mapper.is_none_or(|mapper| mapper.map(self, start, bytes).is_ok()) {
            return Some(extent);
        }
        self.unmap(extent).map(give_back);
        None
    }

    /// The frames if nobody reaches them any more; else they are nobody's for good.
    fn unmap(self, extent: Extent) -> Option<Extent> {
        let (start, bytes) = (extent.base(), extent.bytes());
        let mapper = self.mapper();
        let is_out = mapper.is_none_or(|mapper| mapper.unmap(self, start, bytes));
        is_out.then_some(extent)
    }

    /// The same for the frames of a claim.
    pub(super) fn take_back(claim: usize, bytes: usize) -> Option<Extent> {
        let (memory, first) = Self::of_claim(claim);
        let pages = (bytes / base::PAGE_BYTES) as u64;
        memory.unmap(Extent::from_parts(first, pages))
    }

    /// Lets those that it is for reach a page that lies there.
    pub(super) fn let_reach(self, page: PhysAddr) -> Result<(), NotMapped> {
        let mapper = self.mapper();
        mapper.map_or(Ok(()), |mapper| mapper.map(self, page, PAGE_BYTES))
    }

    /// Takes that back; false if some may still reach it.
    pub(super) fn keep_from(self, page: PhysAddr) -> bool {
        let mapper = self.mapper();
        mapper.is_none_or(|mapper| mapper.unmap(self, page, PAGE_BYTES))
    }

    fn mapper(self) -> Option<&'static dyn DmaMapper> {
        MAPPER.get().copied().filter(|_| self != Self::Untranslated)
    }

    /// Both in a word.
    pub(super) fn claim(self, first: FrameNo) -> usize {
        let above = match self {
            Self::Untranslated => UNTRANSLATED << KIND_SHIFT,
            Self::Shared => SHARED << KIND_SHIFT,
            Self::Of(address) => {
                OF_ONE << KIND_SHIFT | (address.requester_id() as usize) << FUNCTION_SHIFT
            }
        };
        above | first as usize
    }

    fn of_claim(claim: usize) -> (Self, FrameNo) {
        let first = claim & ((1 << FUNCTION_SHIFT) - 1);
        let memory = match claim >> KIND_SHIFT {
            UNTRANSLATED => Self::Untranslated,
            SHARED => Self::Shared,
            _ => Self::Of(PciAddress::of_requester((claim >> FUNCTION_SHIFT) as u16)),
        };
        (memory, first as FrameNo)
    }
}
