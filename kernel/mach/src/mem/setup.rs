//! From the boot loader's memory map to a working allocator.
//!
//! Nothing can be allocated at first, so the frame table is carved out of the
//! largest range of RAM below 4 GiB (the boot tables map no more). Frames above that
//! line are donated once the final tables map them.

use core::mem::size_of;

use arch::layout::{BOOT_DIRECT_MAP_BYTES, DIRECT_MAP};
use base::{PAGE_BYTES, PAGE_SHIFT, PhysAddr};
use frames::{FrameInfo, FrameTable, SECTIONS_MAX};

use super::{kernel_map, ram, tlb, user};
use crate::boot::{MemoryMap, RegionKind, Span};

/// Below lie what firmware left and the code that starts CPUs; it is not worth having.
const LOW_MEMORY_END: PhysAddr = PhysAddr(1 << 20);

/// Bytes `[start, end)` of physical memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct PhysRange {
    /// First byte.
    pub start: PhysAddr,
    /// First byte behind.
    pub end: PhysAddr,
}

impl From<Span> for PhysRange {
    fn from(span: Span) -> Self {
        Self {
            start: span.start,
            end: span.end(),
        }
    }
}

impl PhysRange {
    const fn new(start: PhysAddr, bytes: u64) -> Self {
        Self {
            start,
            end: PhysAddr(start.0.saturating_add(bytes)),
        }
    }

    /// Length in bytes.
    pub const fn bytes(&self) -> u64 {
        self.end.0.saturating_sub(self.start.0)
    }

    const fn pages(&self) -> u64 {
        self.bytes() >> PAGE_SHIFT
    }

    const fn first_frame(&self) -> u64 {
        self.start.0 >> PAGE_SHIFT
    }

    /// The whole pages inside.
    fn shrunk(self) -> Self {
        Self {
            start: self.start.max(LOW_MEMORY_END).page_ceil(),
            end: self.end.page_floor(),
        }
    }

    /// The whole pages that this touches.
    fn grown(self) -> Self {
        Self {
            start: self.start.page_floor(),
            end: self.end.page_ceil(),
        }
    }
}

/// A few ranges in ascending order.
struct Ranges {
    items: [PhysRange; Self::MAX],
    len: usize,
}

impl Ranges {
    const MAX: usize = SECTIONS_MAX;

    /// The usable pages of a memory map; what does not fit into the list is not used.
    fn of(map: impl Iterator<Item = PhysRange>) -> Self {
        let none = PhysRange::new(PhysAddr(0), 0);
        let mut ranges = Self {
            items: [none; Self::MAX],
            len: 0,
        };
        for range in map
            .map(PhysRange::shrunk)
            .filter(|range| range.bytes() > 0)
            .take(Self::MAX)
        {
            ranges.items[ranges.len] = range;
            ranges.len += 1;
        }
        ranges.items[..ranges.len].sort_unstable_by_key(|range| range.start);
        ranges
    }

    /// The whole pages that hold something already.
    fn of_reserved(spans: &[Span]) -> Self {
        let none = PhysRange::new(PhysAddr(0), 0);
        let mut ranges = Self {
            items: [none; Self::MAX],
            len: spans.len(),
        };
        for (slot, span) in ranges.items[..spans.len()].iter_mut().zip(spans) {
            *slot = PhysRange::from(*span).grown();
        }
        ranges
    }

    fn as_slice(&self) -> &[PhysRange] {
        &self.items[..self.len]
    }
}

/// Takes over all usable RAM of the boot loader's map that is not reserved.
///
/// # Panics
/// If there is not enough memory to describe the memory.
pub(crate) fn init(memory: &MemoryMap) {
    let usable = memory
        .regions()
        .iter()
        .filter(|region| region.kind == RegionKind::Usable);
    let ranges = Ranges::of(usable.map(|region| region.span.into()));
    let taken = Ranges::of_reserved(memory.reserved());
    let taken = taken.as_slice();
    let ram = ranges.as_slice();
    let metadata = place_metadata(ram, taken).expect("no room to describe the memory");
    describe(ram, metadata);
    let reserved = |pass: fn(&PhysRange) -> bool| {
        ram.iter()
            .filter(move |range| pass(range))
            .for_each(|range| {
                donate_around(*range, taken, metadata);
            });
    };
    reserved(|range| range.end.0 <= BOOT_DIRECT_MAP_BYTES);
    kernel_map::build(ram).expect("no memory for the kernel's tables");
    reserved(|range| range.end.0 > BOOT_DIRECT_MAP_BYTES);
    crate::cpu::register_service(tlb::serve);
    user::init();
}

fn metadata_bytes(ram: &[PhysRange]) -> u64 {
    let frames: u64 = ram.iter().map(PhysRange::pages).sum();
    (frames * size_of::<FrameInfo>() as u64).next_multiple_of(PAGE_BYTES as u64)
}

/// The highest gap between taken ranges that the boot tables map and that is large enough.
fn place_metadata(ram: &[PhysRange], taken: &[PhysRange]) -> Option<PhysRange> {
    let bytes = metadata_bytes(ram);
    let mapped = ram
        .iter()
        .filter(|range| range.end.0 <= BOOT_DIRECT_MAP_BYTES);
    mapped.rev().find_map(|range| {
        let mut end = range.end;
        loop {
            let place = PhysRange::new(PhysAddr(end.0.checked_sub(bytes)?), bytes);
            if place.start < range.start {
                return None;
            }
            match taken.iter().copied().find(|t| overlap(t, &place)) {
                Some(obstacle) => end = obstacle.start,
                None => return Some(place),
            }
        }
    })
}

fn overlap(a: &PhysRange, b: &PhysRange) -> bool {
    a.start < b.end && b.start < a.end
}

/// Marks all frames as reserved, in the memory at `metadata`.
fn describe(ram: &[PhysRange], metadata: PhysRange) {
    let mut table = FrameTable::new();
    let mut next = core::ptr::with_exposed_provenance_mut::<FrameInfo>(
        (DIRECT_MAP + metadata.start.0) as usize,
    );
    for range in ram {
        let count = range.pages() as usize;
        for index in 0..count {
            // SAFETY: `metadata` is RAM that nothing uses, has room for all frames, and
            // the boot tables map it.
            unsafe { next.add(index).write(FrameInfo::reserved()) };
        }
        // SAFETY: just initialised; never given back, so it lives for good.
        let infos = unsafe { core::slice::from_raw_parts(next, count) };
        next = next.wrapping_add(count);
        assert!(
            table.add(range.first_frame(), infos).is_ok(),
            "as many sections as ranges"
        );
    }
    ram::describe(table);
}

/// Donates what of `range` is neither taken nor metadata.
fn donate_around(range: PhysRange, taken: &[PhysRange], metadata: PhysRange) {
    let mut start = range.start;
    while start < range.end {
        let obstacles = || taken.iter().copied().chain([metadata]);
        if let Some(inside) = obstacles().find(|o| o.start <= start && start < o.end) {
            start = inside.end;
            continue;
        }
        let ahead = obstacles().map(|o| o.start).filter(|&at| at > start);
        let end = ahead.min().unwrap_or(range.end).min(range.end);
        let free = PhysRange { start, end };
        ram::donate_frames(free.first_frame(), free.pages());
        start = end;
    }
}
