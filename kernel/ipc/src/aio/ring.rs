//! The memory of a context: Linux's `struct aio_ring`, which libaio and fio read by themselves.

use alloc::vec::Vec;

use base::PAGE_BYTES;
use mach::mem::Page;
use mach::mem::fallible::TryGrow;
use sync::{Error, Result};

/// Bytes of an end (`struct io_event`), and of what stands before the first.
pub const EVENT_BYTES: usize = 32;
const HEADER_BYTES: usize = 32;

/// Where the header has its numbers.
const PLACES: usize = 4;
const HEAD: usize = 8;
const TAIL: usize = 12;
const MAGIC: usize = 16;
const COMPATIBLE: usize = 20;
const HEADER: usize = 28;

/// AIO_RING_MAGIC, AIO_RING_COMPAT_FEATURES.
const MAGIC_NUMBER: u32 = 0xa10a_10a1;
const FEATURES: u32 = 1;

/// The pages, which the program may write to at any time.
pub(super) struct Ring {
    pub pages: Vec<Page>,
    places: u32,
}

impl Ring {
    /// One with room for so many ends at least, and one place that stays free.
    ///
    /// Errors: `OutOfMemory`.
    pub fn new(ends: u32) -> Result<Self> {
        let bytes = HEADER_BYTES + (ends as usize + 1) * EVENT_BYTES;
        let count = bytes.div_ceil(PAGE_BYTES);
        let mut pages = Vec::new();
        pages.make_room(count)?;
        for _ in 0..count {
            pages.push(Page::zeroed().ok_or(Error::OutOfMemory)?);
        }
        let places = ((count * PAGE_BYTES - HEADER_BYTES) / EVENT_BYTES) as u32;
        let ring = Self { pages, places };
        ring.store(PLACES, places);
        ring.store(MAGIC, MAGIC_NUMBER);
        ring.store(COMPATIBLE, FEATURES);
        ring.store(HEADER, HEADER_BYTES as u32);
        Ok(ring)
    }

    /// Ends that it takes before one was taken out.
    pub fn capacity(&self) -> u32 {
        self.places - 1
    }

    fn store(&self, at: usize, value: u32) {
        if let Some(first) = self.pages.first() {
            first.store_u32(at, value);
        }
    }

    /// Where the program, or the kernel for it, takes the next end; any number of the program's is a place.
    pub fn head(&self) -> u32 {
        let head = self.pages.first().map_or(0, |first| first.load_u32(HEAD));
        match head < self.places {
            true => head,
            false => head % self.places,
        }
    }

    /// The ends before `head` were taken.
    pub fn set_head(&self, head: u32) {
        self.store(HEAD, head);
    }

    /// Ends in it, of which the next would stand at `tail`.
    pub fn ready(&self, tail: u32) -> u32 {
        let head = self.head();
        match tail >= head {
            true => tail - head,
            false => tail + self.places - head,
        }
    }

    /// The place behind `place`.
    pub fn next(&self, place: u32, by: u32) -> u32 {
        let next = place + by;
        match next < self.places {
            true => next,
            false => next - self.places,
        }
    }

    /// Shows an end at `tail`; returns the tail behind it.
    pub fn put(&self, tail: u32, words: [u64; 4]) -> u32 {
        let (page, at) = self.place(tail);
        if let Some(page) = page {
            let mut bytes = [0; EVENT_BYTES];
            for (to, word) in bytes.chunks_exact_mut(8).zip(words) {
                to.copy_from_slice(&word.to_ne_bytes());
            }
            page.write(at, &bytes);
        }
        let next = self.next(tail, 1);
        self.store(TAIL, next);
        next
    }

    fn place(&self, place: u32) -> (Option<&Page>, usize) {
        let at = HEADER_BYTES + place as usize * EVENT_BYTES;
        (self.pages.get(at / PAGE_BYTES), at % PAGE_BYTES)
    }

    /// At most `count` ends from `place` on that lie in one page: that, where in it, and how many.
    pub fn run(&self, place: u32, count: u32) -> Option<(&Page, usize, u32)> {
        let (page, at) = self.place(place);
        let in_page = ((PAGE_BYTES - at) / EVENT_BYTES) as u32;
        Some((page?, at, count.min(in_page).min(self.places - place)))
    }
}
