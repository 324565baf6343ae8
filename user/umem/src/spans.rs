//! Runs of units, from segments.
//!
//! Segments with free units are on lists by the length of their longest free run, in
//! powers of two, so a run that is long enough is found by looking at a few list heads.

use core::ptr::NonNull;

use crate::lock::Lock;
use crate::map::{self, UNIT};
use crate::segment::{HEADER_UNITS, SEGMENT, Segment, UNITS};
use crate::settings::Fit;
use crate::{settings, stats};

/// Units of the longest span.
pub const LONGEST: usize = 64;
const _: () = assert!(LONGEST <= UNITS - HEADER_UNITS);

const BINS: usize = 8;
/// Segments of a bin whose longest run may be too short that are tried nevertheless.
const TRIES: usize = 4;

/// Every segment that has free units.
pub struct Spans {
    bins: [Option<NonNull<Segment>>; BINS],
    segments: usize,
    used_units: usize,
    /// Where the span ends that was taken last.
    last: usize,
}

// SAFETY: **Header**: segments are reached under the lock around this.
unsafe impl Send for Spans {}

/// What the spans hold.
#[derive(Clone, Copy, Debug, Default)]
pub struct SpanStats {
    /// Bytes of addresses in segments.
    pub mapped: usize,
    /// Bytes of spans in use.
    pub used: usize,
}

static SPANS: Lock<Spans> = Lock::new(Spans {
    bins: [None; BINS],
    segments: 0,
    used_units: 0,
    last: 0,
});

/// The right to allocate spans.
pub fn lock() -> crate::lock::Guard<'static, Spans> {
    SPANS.lock()
}

/// Whether nobody has the spans, at this moment.
pub fn is_free() -> bool {
    SPANS.is_free()
}

/// For `fork`.
pub fn acquire() {
    SPANS.acquire();
}

/// For `fork`.
pub fn release() {
    SPANS.release();
}

impl Spans {
    /// A span of `units` units (at most [`LONGEST`]), and whether it holds only zeros.
    pub fn alloc(&mut self, units: usize) -> Option<(NonNull<u8>, bool)> {
        let (mut segment, first) = self.find(units).or_else(|| self.map_segment())?;
        // SAFETY: **Header**.
        let is_zeroed = unsafe { segment.as_mut() }.take(first, units);
        self.used_units += units;
        self.last = Segment::address(segment, first + units).addr().get();
        self.file(segment);
        Some((Segment::address(segment, first), is_zeroed))
    }

    /// Takes a span back.
    pub fn free(&mut self, start: NonNull<u8>) {
        let units = span_units(start);
        self.shrink(start, units);
    }

    /// Frees the last `units` units of a span.
    pub fn shrink(&mut self, start: NonNull<u8>, units: usize) {
        let mut segment = Segment::of(start);
        // SAFETY: **Header**.
        unsafe { segment.as_mut() }.give(Segment::unit_of(start), units);
        self.used_units -= units;
        self.file(segment);
    }

    /// Lengthens a span by `units` where it is; `false` if there is no room.
    pub fn extend(&mut self, start: NonNull<u8>, units: usize) -> bool {
        let mut segment = Segment::of(start);
        // SAFETY: **Header**.
        let is_extended = unsafe { segment.as_mut() }.extend(Segment::unit_of(start), units);
        if is_extended {
            self.used_units += units;
            self.file(segment);
        }
        is_extended
    }

    fn find(&self, units: usize) -> Option<(NonNull<Segment>, usize)> {
        match settings::fit() {
            Fit::Instant => self.find_at_once(units),
            fit => fit.choose(self.segments(), units, self.last),
        }
    }

    /// Every segment that has free units.
    fn segments(&self) -> impl Iterator<Item = NonNull<Segment>> {
        let lists = self.bins.iter();
        lists.flat_map(|&first| {
            // SAFETY: **Header**.
            core::iter::successors(first, |segment| unsafe { segment.as_ref() }.next)
        })
    }

    fn find_at_once(&self, units: usize) -> Option<(NonNull<Segment>, usize)> {
        let maybe = bin_of(units);
        let mut candidate = self.bins[maybe];
        for _ in 0..TRIES {
            let Some(segment) = candidate else { break };
            // SAFETY: **Header**.
            let header = unsafe { segment.as_ref() };
            if let Some(first) = header.find(units) {
                return Some((segment, first));
            }
            candidate = header.next;
        }
        let segment = self.bins[maybe + 1..].iter().find_map(|&first| first)?;
        // SAFETY: **Header**.
        Some((segment, unsafe { segment.as_ref() }.find(units)?))
    }

    #[cold]
    fn map_segment(&mut self) -> Option<(NonNull<Segment>, usize)> {
        if !map::prepare() {
            return None;
        }
        let segment = Segment::map()?;
        self.segments += 1;
        Some((segment, HEADER_UNITS))
    }

    /// Puts a segment on the list where it belongs now.
    fn file(&mut self, mut segment: NonNull<Segment>) {
        stats::note_spans(self.segments * SEGMENT, self.used_units * UNIT);
        // SAFETY: **Header**.
        let longest = unsafe { segment.as_ref() }.longest_run();
        let bin = (longest > 0).then(|| bin_of(longest) as u8);
        // SAFETY: **Header**.
        let header = unsafe { segment.as_mut() };
        if header.bin == bin {
            return;
        }
        self.unlink(segment);
        if let Some(bin) = bin {
            let first = &mut self.bins[bin as usize];
            // SAFETY: **Header**, for both.
            unsafe {
                let header = segment.as_mut();
                (header.prev, header.next, header.bin) = (None, *first, Some(bin));
                if let Some(mut next) = *first {
                    next.as_mut().prev = Some(segment);
                }
            }
            *first = Some(segment);
        }
    }

    fn unlink(&mut self, mut segment: NonNull<Segment>) {
        // SAFETY: **Header**, for the segment and its neighbours.
        unsafe {
            let header = segment.as_mut();
            let Some(bin) = header.bin.take() else { return };
            match header.prev {
                Some(mut prev) => prev.as_mut().next = header.next,
                None => self.bins[bin as usize] = header.next,
            }
            if let Some(mut next) = header.next {
                next.as_mut().prev = header.prev;
            }
        }
    }

    /// Returns memory that was free since the last call, or all that is free, to the system.
    pub fn discard(&mut self, all: bool) {
        for bin in 0..BINS {
            let mut candidate = self.bins[bin];
            while let Some(segment) = candidate {
                // SAFETY: **Header**.
                candidate = unsafe { segment.as_ref() }.next;
                Segment::discard(segment, all);
                // SAFETY: **Header**.
                let header = unsafe { segment.as_ref() };
                if header.is_unused() && header.dirty_units() == 0 {
                    self.unlink(segment);
                    self.segments -= 1;
                    Segment::unmap(segment);
                }
            }
        }
    }

    /// What there is.
    pub fn stats(&self) -> SpanStats {
        SpanStats {
            mapped: self.segments * SEGMENT,
            used: self.used_units * UNIT,
        }
    }
}

/// Units of an allocated span. Its owner asks.
pub fn span_units(start: NonNull<u8>) -> usize {
    let segment = Segment::of(start);
    // SAFETY: **Header**: only the owner changes the length of its span.
    unsafe { (*segment.as_ptr()).length(Segment::unit_of(start)) }
}

/// The list for segments whose longest run has this length.
fn bin_of(units: usize) -> usize {
    (units.ilog2() as usize).min(BINS - 1)
}
