//! From the boot loader's memory map to a working allocator.
//!
//! Nothing can be allocated at first, so the frame table is carved out of the
//! largest range of RAM below 4 GiB (the boot tables map no more). Frames above that
//! line are donated once the final tables map them.

use core::mem::{align_of, size_of};
use core::sync::atomic::AtomicU64;

use arch::layout::{BOOT_DIRECT_MAP_BYTES, DIRECT_MAP};
use base::{PAGE_BYTES, PAGE_SHIFT, PhysAddr};
use bootinfo::{MemoryMap, RESERVED_MAX, Span};
use frames::{FrameInfo, FrameTable, SECTIONS_MAX};

use super::{kernel_map, kernel_tlb, ram, tlb, user};

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

const _: () = assert!(RESERVED_MAX <= Ranges::MAX, "all reservations fit");

/// A few ranges in ascending order.
struct Ranges {
    items: [PhysRange; Self::MAX],
    len: usize,
}

impl Ranges {
    const MAX: usize = SECTIONS_MAX;

    /// The whole pages in `ram`, which ascends; of more than fit, the largest.
    fn of(ram: impl Iterator<Item = PhysRange>) -> Self {
        let none = PhysRange::new(PhysAddr(0), 0);
        let mut ranges = Self {
            items: [none; Self::MAX],
            len: 0,
        };
        for range in ram.map(PhysRange::shrunk).filter(|range| range.bytes() > 0) {
            ranges.add(range);
        }
        ranges
    }

    fn add(&mut self, range: PhysRange) {
        if self.len == Self::MAX {
            let sizes = self.items.iter().enumerate();
            let smallest = sizes.min_by_key(|(_, range)| range.bytes());
            match smallest {
                Some((at, least)) if least.bytes() < range.bytes() => {
                    self.items.copy_within(at + 1.., at);
                    self.len -= 1;
                }
                _ => return,
            }
        }
        self.items[self.len] = range;
        self.len += 1;
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
/// With `shuffle`, single frames come in no order ([`ram::describe`]).
///
/// # Panics
/// If there is not enough memory to describe the memory.
pub(crate) fn init(memory: &MemoryMap, shuffle: bool) {
    let ranges = Ranges::of(memory.ram().map(PhysRange::from));
    let taken = Ranges::of_reserved(memory.reserved());
    let taken = taken.as_slice();
    let ram = ranges.as_slice();
    let metadata = place_metadata(ram, taken).expect("no room to describe the memory");
    describe(ram, metadata, shuffle);
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
    crate::cpu::register_service(serve);
    user::init();
}

/// What CPUs ask of each other.
fn serve() {
    tlb::serve();
    kernel_tlb::serve();
}

fn metadata_bytes(ram: &[PhysRange]) -> u64 {
    let bytes = |range: &PhysRange| {
        let (first, frames) = (range.first_frame(), range.pages() as usize);
        frames * size_of::<FrameInfo>()
            + FrameTable::zero_words(first, frames) * size_of::<AtomicU64>()
    };
    let bytes: usize = ram.iter().map(bytes).sum();
    bytes.next_multiple_of(PAGE_BYTES) as u64
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

const _: () = assert!(align_of::<FrameInfo>() == align_of::<AtomicU64>());

fn overlap(a: &PhysRange, b: &PhysRange) -> bool {
    a.start < b.end && b.start < a.end
}

/// Marks all frames as reserved, in the memory at `metadata`.
fn describe(ram: &[PhysRange], metadata: PhysRange, shuffle: bool) {
    let mut table = FrameTable::new();
    let mut next =
        core::ptr::with_exposed_provenance_mut::<u8>((DIRECT_MAP + metadata.start.0) as usize);
    for range in ram {
        let (first, frames) = (range.first_frame(), range.pages() as usize);
        // SAFETY: `metadata` is RAM that nothing uses, has room for all of this, and the
        // boot tables map it; it is never given back.
        let (infos, zeros) = unsafe {
            (
                carve(&mut next, frames, FrameInfo::reserved),
                carve(&mut next, FrameTable::zero_words(first, frames), || {
                    AtomicU64::new(0)
                }),
            )
        };
        assert!(
            table.add(first, infos, zeros).is_ok(),
            "as many sections as ranges"
        );
    }
    ram::describe(table, shuffle);
}

/// A slice of `count` new values at `next`, which moves behind them.
///
/// # Safety
/// There is room at `next`, aligned for `T`, that is mapped, unused and never given back.
unsafe fn carve<T>(next: &mut *mut u8, count: usize, make: impl Fn() -> T) -> &'static [T] {
    let first = next.cast::<T>();
    for index in 0..count {
        // SAFETY: the caller's promise.
        unsafe { first.add(index).write(make()) };
    }
    *next = first.wrapping_add(count).cast();
    // SAFETY: just initialised; lives for good by the caller's promise.
    unsafe { core::slice::from_raw_parts(first, count) }
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
