//! The map of physical memory.
//!
//! The loader lists regions; what the kernel's image and the loader's modules occupy is
//! listed as `reserved` and lies inside usable regions.

use base::{PAGE_BYTES, PhysAddr};

/// Regions that are kept: as many as Linux's boot parameters can list.
pub const REGIONS_MAX: usize = 128;
/// Reservations that are kept.
pub const RESERVED_MAX: usize = 12;

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

impl RegionKind {
    /// Of the types that the firmware's call E820 knows (ACPI 6.5, 15.1), which all loaders
    /// pass on.
    pub const fn of_e820(number: u32) -> Self {
        match number {
            1 => Self::Usable,
            3 | 4 => Self::Acpi,
            _ => Self::Reserved,
        }
    }
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

    fn holds(&self, at: PhysAddr) -> bool {
        self.start <= at && at < self.end()
    }

    fn touches(&self, other: &Self) -> bool {
        self.start < other.end() && other.start < self.end()
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

    fn regions(&self) -> &[Region] {
        &self.regions[..self.region_count]
    }

    /// All that is listed, whatever for.
    pub fn listed(&self) -> impl Iterator<Item = &Span> {
        self.regions().iter().map(|region| &region.span)
    }

    fn usable(&self) -> impl Iterator<Item = &Span> {
        let regions = self.regions().iter();
        regions.filter_map(|region| (region.kind == RegionKind::Usable).then_some(&region.span))
    }

    fn denied(&self) -> impl Iterator<Item = &Span> {
        let regions = self.regions().iter();
        regions.filter_map(|region| (region.kind != RegionKind::Usable).then_some(&region.span))
    }

    /// RAM from low to high: what some region calls usable and none denies, neighbours
    /// joined. Reserved spans are not taken out.
    pub fn ram(&self) -> impl Iterator<Item = Span> + '_ {
        let mut from = PhysAddr(0);
        core::iter::from_fn(move || {
            let span = self.ram_from(from)?;
            from = span.end();
            Some(span)
        })
    }

    /// The first piece of RAM at or above `at`.
    fn ram_from(&self, mut at: PhysAddr) -> Option<Span> {
        loop {
            let above = self.usable().filter(|span| span.end() > at);
            let start = above.map(|span| span.start.max(at)).min()?;
            match self.denied().find(|span| span.holds(start)) {
                Some(denied) => at = denied.end(),
                None => {
                    let end = self.ram_end(start);
                    return Some(Span {
                        start,
                        bytes: end.0 - start.0,
                    });
                }
            }
        }
    }

    /// Where the RAM ends that is usable at `start`.
    fn ram_end(&self, start: PhysAddr) -> PhysAddr {
        let mut end = start;
        while let Some(more) = self
            .usable()
            .find(|span| span.start <= end && end < span.end())
        {
            end = more.end();
        }
        let above = self.denied().map(|span| span.start);
        above.filter(|&at| at > start).fold(end, PhysAddr::min)
    }

    /// What is taken already inside usable regions: not sorted, may touch.
    pub fn reserved(&self) -> &[Span] {
        &self.reserved[..self.reserved_count]
    }

    /// The lowest page of RAM that begins at `from` or above, ends below `limit` and is not
    /// reserved.
    pub fn free_page(&self, from: PhysAddr, limit: PhysAddr) -> Option<PhysAddr> {
        let pages = self.ram().flat_map(|span| {
            let first = span.start.max(from).page_ceil().0;
            let last = span.end().min(limit).0.saturating_sub(PAGE_BYTES as u64);
            (first..=last).step_by(PAGE_BYTES).map(PhysAddr)
        });
        let is_free = |page: &PhysAddr| {
            let page = Span {
                start: *page,
                bytes: PAGE_BYTES as u64,
            };
            !self.reserved().iter().any(|taken| taken.touches(&page))
        };
        pages.into_iter().find(is_free)
    }

    /// Adds a region. What does not fit the list is left unused; loaders list what is
    /// not RAM apart from RAM, so that is safe.
    pub fn add(&mut self, region: Region) {
        if region.span.bytes != 0
            && let Some(slot) = self.regions.get_mut(self.region_count)
        {
            *slot = region;
            self.region_count += 1;
        }
    }

    /// Keeps a span from being used; false if the list is full.
    #[must_use]
    pub fn reserve(&mut self, span: Span) -> bool {
        if span.bytes == 0 {
            return true;
        }
        let Some(slot) = self.reserved.get_mut(self.reserved_count) else {
            return false;
        };
        *slot = span;
        self.reserved_count += 1;
        true
    }
}

impl Default for MemoryMap {
    fn default() -> Self {
        Self::new()
    }
}
