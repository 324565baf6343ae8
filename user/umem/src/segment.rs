//! Four megabytes of addresses in units of 16 KiB, with their description in front.

use core::mem::MaybeUninit;
use core::ptr::NonNull;

use slab::Slab;

use crate::map::{UNIT, UNIT_SHIFT};
use crate::{program_break, settings, sys};

/// Words of a slab's map: a unit has 1024 objects of 16 bytes.
pub const WORDS: usize = 16;
/// Bytes of a segment, and its alignment.
pub const SEGMENT: usize = UNITS * UNIT;
/// Units of a segment.
pub const UNITS: usize = 256;
/// Units that the header takes.
pub const HEADER_UNITS: usize = size_of::<Segment>().div_ceil(UNIT);
const _: () = assert!(HEADER_UNITS == 3, "most of a segment is for objects");

/// One bit per unit.
#[derive(Clone, Copy)]
pub struct Units([u64; UNITS / 64]);

impl Units {
    pub fn set(&mut self, first: usize, count: usize, value: bool) {
        for unit in first..first + count {
            let (word, bit) = (unit / 64, 1 << (unit % 64));
            if value {
                self.0[word] |= bit;
            } else {
                self.0[word] &= !bit;
            }
        }
    }

    /// The first unit from `start` on whose bit is `value`, or [`UNITS`].
    pub fn next(&self, start: usize, value: bool) -> usize {
        let mut unit = start;
        while unit < UNITS {
            let word = if value {
                self.0[unit / 64]
            } else {
                !self.0[unit / 64]
            };
            let rest = word >> (unit % 64);
            if rest != 0 {
                return unit + rest.trailing_zeros() as usize;
            }
            unit = (unit / 64 + 1) * 64;
        }
        UNITS
    }

    /// Calls `found` with the start and length of each run of set bits.
    pub fn for_each_run(&self, mut found: impl FnMut(usize, usize)) {
        let mut start = self.next(0, true);
        while start < UNITS {
            let end = self.next(start, false);
            found(start, end - start);
            start = self.next(end, true);
        }
    }

    pub fn and(&self, other: &Self) -> Self {
        Self(core::array::from_fn(|word| self.0[word] & other.0[word]))
    }

    pub fn not(&self) -> Self {
        Self(self.0.map(|word| !word))
    }

    pub fn is_empty(&self) -> bool {
        self.0.iter().all(|&word| word == 0)
    }

    pub fn count(&self) -> usize {
        self.0.iter().map(|word| word.count_ones() as usize).sum()
    }
}

/// The header; see the crate's invariant **Header**.
#[repr(C)]
pub struct Segment {
    /// Links of the list of segments with about as long a free run.
    pub next: Option<NonNull<Segment>>,
    pub prev: Option<NonNull<Segment>>,
    /// Which of these lists it is on.
    pub bin: Option<u8>,
    /// Whether it comes from the program's break.
    is_from_break: bool,
    used: Units,
    /// Free units whose memory may hold frames.
    dirty: Units,
    /// Those that were dirty when the last interval began.
    old: Units,
    /// For each unit in use, the first unit of its span.
    first: [u8; UNITS],
    /// For the first unit of each span, its length.
    length: [u8; UNITS],
    slabs: [MaybeUninit<Slab<WORDS>>; UNITS],
}

impl Segment {
    /// Maps a segment with all units free.
    pub fn map() -> Option<NonNull<Self>> {
        let from_break = match settings::is_break_used() {
            true => program_break::map_aligned(SEGMENT, SEGMENT),
            false => None,
        };
        let memory = from_break.or_else(|| sys::map_aligned(SEGMENT, SEGMENT, 0))?;
        let mut segment: NonNull<Self> = memory.cast();
        // SAFETY: zeros are a valid header, and the memory is ours.
        let header = unsafe { segment.as_mut() };
        header.is_from_break = from_break.is_some();
        header.used.set(0, HEADER_UNITS, true);
        Some(segment)
    }

    /// Gives a segment back to where it came from. The caller has it alone.
    pub fn unmap(this: NonNull<Self>) {
        // SAFETY: the caller has it.
        let is_from_break = unsafe { this.as_ref() }.is_from_break;
        match is_from_break {
            true => program_break::unmap(this.cast(), SEGMENT),
            false => sys::unmap(this.cast(), SEGMENT),
        }
    }

    /// The segment in which an address with a class lies (**Map**).
    pub fn of(address: NonNull<u8>) -> NonNull<Self> {
        let start = address
            .as_ptr()
            .map_addr(|address| address & !(SEGMENT - 1));
        // SAFETY: the first segment of addresses is never mapped, so it is not null.
        unsafe { NonNull::new_unchecked(start.cast()) }
    }

    /// The unit of an address.
    pub fn unit_of(address: NonNull<u8>) -> usize {
        (address.addr().get() >> UNIT_SHIFT) % UNITS
    }

    /// Where a unit begins.
    pub fn address(this: NonNull<Self>, unit: usize) -> NonNull<u8> {
        this.cast()
            .map_addr(|start| start.saturating_add(unit * UNIT))
    }

    /// The first run of `count` free units.
    pub fn find(&self, count: usize) -> Option<usize> {
        let mut start = self.used.next(0, false);
        while start < UNITS {
            let end = self.used.next(start, true);
            if end - start >= count {
                return Some(start);
            }
            start = self.used.next(end, false);
        }
        None
    }

    /// Length of the longest run of free units.
    pub fn longest_run(&self) -> usize {
        let mut longest = 0;
        self.for_each_free_run(|_, length| longest = longest.max(length));
        longest
    }

    /// Calls `found` with the start and length of each run of free units.
    pub fn for_each_free_run(&self, found: impl FnMut(usize, usize)) {
        self.used.not().for_each_run(found);
    }

    /// Marks `count` units from `first` on as a span. Returns whether they are all zeros.
    pub fn take(&mut self, first: usize, count: usize) -> bool {
        let is_zeroed = self.dirty.next(first, true) >= first + count;
        self.used.set(first, count, true);
        self.dirty.set(first, count, false);
        self.old.set(first, count, false);
        self.first[first..first + count].fill(first as u8);
        self.length[first] = count as u8;
        is_zeroed
    }

    /// Lengthens a span by `count` units if those behind it are free.
    pub fn extend(&mut self, first: usize, count: usize) -> bool {
        let length = self.length[first] as usize;
        let end = first + length;
        if end + count > UNITS || self.used.next(end, true) < end + count {
            return false;
        }
        self.take(end, count);
        self.first[end..end + count].fill(first as u8);
        self.length[first] = (length + count) as u8;
        true
    }

    /// Frees the last `count` units of a span: the whole of it, or its tail.
    pub fn give(&mut self, first: usize, count: usize) {
        let left = self.length[first] as usize - count;
        self.length[first] = left as u8;
        self.used.set(first + left, count, false);
        self.dirty.set(first + left, count, true);
    }

    /// Units of the span that starts with this one.
    pub fn length(&self, first: usize) -> usize {
        self.length[first] as usize
    }

    /// Whether no span is left.
    pub fn is_unused(&self) -> bool {
        self.used.next(HEADER_UNITS, true) == UNITS
    }

    /// Units that hold frames though they are free.
    pub fn dirty_units(&self) -> usize {
        self.dirty.count()
    }

    /// Discards what was dirty for an interval, or everything, and starts a new interval.
    pub fn discard(this: NonNull<Self>, all: bool) {
        let mut header = this;
        // SAFETY: **Header**: the caller holds the lock of the spans.
        let header = unsafe { header.as_mut() };
        let idle = if all {
            header.dirty
        } else {
            header.dirty.and(&header.old)
        };
        if !idle.is_empty() {
            idle.for_each_run(|first, count| {
                sys::discard(Self::address(this, first), count * UNIT);
            });
            header.dirty = header.dirty.and(&idle.not());
        }
        header.old = header.dirty;
    }

    /// Where the description of the slab lies to which an address belongs.
    pub fn slab_of(this: NonNull<Self>, address: NonNull<u8>) -> NonNull<Slab<WORDS>> {
        let this = this.as_ptr();
        // SAFETY: **Header**: `first` was written before the slab was used, and stays. No
        // reference to the whole header is made: others use its other parts.
        unsafe {
            let first = (*this).first[Self::unit_of(address)] as usize;
            NonNull::new_unchecked((&raw mut (*this).slabs[first]).cast())
        }
    }
}
