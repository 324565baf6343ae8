//! The map of physical memory.
//!
//! The loader lists regions; what the kernel's image, the initrd and the loader's own
//! notes occupy is listed as `reserved` and lies inside usable regions.

use base::PhysAddr;

const REGIONS_MAX: usize = 64;
const RESERVED_MAX: usize = 8;

/// What a region is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RegionKind {
    /// RAM that the kernel may use, except what is reserved.
    Usable,
    /// RAM with ACPI's tables: readable, to be left alone.
    Acpi,
    /// Anything else.
    Reserved,
}

/// Some bytes of physical memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Span {
    /// First byte.
    pub start: PhysAddr,
    /// How many.
    pub bytes: u64,
}

impl Span {
    /// The address after the last byte.
    pub const fn end(&self) -> PhysAddr {
        PhysAddr(self.start.0.saturating_add(self.bytes))
    }
}

/// A span and what it is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Region {
    /// Where.
    pub span: Span,
    /// What for.
    pub kind: RegionKind,
}

/// All regions, as the loader listed them.
#[derive(Debug)]
pub struct MemoryMap {
    regions: [Region; REGIONS_MAX],
    region_count: usize,
    reserved: [Span; RESERVED_MAX],
    reserved_count: usize,
}

const NOTHING: Span = Span {
    start: PhysAddr(0),
    bytes: 0,
};

impl MemoryMap {
    /// A map without regions.
    pub const fn new() -> Self {
        Self {
            regions: [Region {
                span: NOTHING,
                kind: RegionKind::Reserved,
            }; REGIONS_MAX],
            region_count: 0,
            reserved: [NOTHING; RESERVED_MAX],
            reserved_count: 0,
        }
    }

    /// The regions.
    pub fn regions(&self) -> &[Region] {
        &self.regions[..self.region_count]
    }

    /// What is taken already inside usable regions: not sorted, may touch.
    pub fn reserved(&self) -> &[Span] {
        &self.reserved[..self.reserved_count]
    }

    /// Bytes of usable RAM, reserved spans included.
    pub fn usable_bytes(&self) -> u64 {
        let usable = self
            .regions()
            .iter()
            .filter(|region| region.kind == RegionKind::Usable);
        usable.map(|region| region.span.bytes).sum()
    }

    /// Adds a region; regions that do not fit the list are left unused.
    pub(super) fn add(&mut self, region: Region) {
        if let Some(slot) = self.regions.get_mut(self.region_count) {
            *slot = region;
            self.region_count += 1;
        }
    }

    /// Keeps a span from being used.
    ///
    /// # Panics
    /// If the list is full: the kernel itself makes fewer reservations than fit.
    pub(super) fn reserve(&mut self, span: Span) {
        if span.bytes != 0 {
            self.reserved[self.reserved_count] = span;
            self.reserved_count += 1;
        }
    }
}

impl Default for MemoryMap {
    fn default() -> Self {
        Self::new()
    }
}
