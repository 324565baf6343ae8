//! A run of pages cut into objects, with one bit per object.

use core::ptr::NonNull;

use crate::geometry::Geometry;
use crate::magazine::{Magazine, Round};

/// Why an object cannot be taken back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BadFree {
    /// It is free already.
    Twice(Round),
    /// No object starts there.
    Inside(Round),
}

/// What is known about a slab of at most 64 * `WORDS` objects. It lies where its
/// [`SlabSource`](crate::SlabSource) finds it: apart from the objects, or behind them.
#[repr(C)]
pub struct Slab<const WORDS: usize> {
    next: Option<NonNull<Self>>,
    prev: Option<NonNull<Self>>,
    base: NonNull<u8>,
    free: u32,
    /// No word above this one has a free object.
    last_word: u32,
    /// A set bit is a free object.
    map: [u64; WORDS],
}

impl<const WORDS: usize> Slab<WORDS> {
    /// A slab at `base` with all objects free.
    pub const fn new(base: NonNull<u8>, geometry: &Geometry) -> Self {
        assert!(
            geometry.objects() <= 64 * WORDS,
            "the map has a bit for each object"
        );
        let mut map = [0; WORDS];
        let mut word = 0;
        while word < geometry.objects() / 64 {
            map[word] = u64::MAX;
            word += 1;
        }
        if !geometry.objects().is_multiple_of(64) {
            map[word] = (1 << (geometry.objects() % 64)) - 1;
        }
        Self {
            next: None,
            prev: None,
            base,
            free: geometry.objects() as u32,
            last_word: ((geometry.objects() - 1) / 64) as u32,
            map,
        }
    }

    /// Where its objects begin.
    pub const fn base(&self) -> NonNull<u8> {
        self.base
    }

    pub(crate) const fn prev(&self) -> Option<NonNull<Self>> {
        self.prev
    }

    /// Objects that are free.
    pub const fn free_objects(&self) -> usize {
        self.free as usize
    }

    /// Whether the object that starts at `offset` is free; `None` if none starts there.
    pub fn is_free(&self, geometry: &Geometry, offset: usize) -> Option<bool> {
        let index = geometry.index_of(offset)?;
        Some(self.map[index / 64] & (1 << (index % 64)) != 0)
    }

    /// Moves up to `count` objects to `into`. The highest go first, so that pops give
    /// ascending addresses, which the CPU fetches ahead.
    pub(crate) fn take(&mut self, geometry: &Geometry, count: usize, into: &mut Magazine) -> usize {
        let count = count.min(self.free as usize).min(into.room());
        let mut left = count;
        let mut word = (self.last_word as usize).min(WORDS - 1);
        while left > 0 {
            while self.map[word] == 0 {
                word -= 1;
            }
            let bit = 63 - self.map[word].leading_zeros() as usize;
            self.map[word] &= !(1 << bit);
            // SAFETY: the bit says that the object lies in the slab.
            into.push(unsafe { self.base.add((word * 64 + bit) * geometry.object_bytes()) });
            left -= 1;
        }
        self.last_word = word as u32;
        self.free -= count as u32;
        count
    }

    /// Takes an object back.
    pub(crate) fn put(&mut self, geometry: &Geometry, object: Round) -> Result<(), BadFree> {
        let offset = object.addr().get().wrapping_sub(self.base.addr().get());
        let index = geometry.index_of(offset).ok_or(BadFree::Inside(object))?;
        let (word, bit) = (index / 64, 1 << (index % 64));
        if self.map[word] & bit != 0 {
            return Err(BadFree::Twice(object));
        }
        self.map[word] |= bit;
        self.last_word = self.last_word.max(word as u32);
        self.free += 1;
        Ok(())
    }
}

/// The slabs of a depot that have free objects.
pub(crate) struct SlabList<const WORDS: usize> {
    first: Option<NonNull<Slab<WORDS>>>,
    last: Option<NonNull<Slab<WORDS>>>,
}

impl<const WORDS: usize> SlabList<WORDS> {
    pub const fn new() -> Self {
        Self {
            first: None,
            last: None,
        }
    }

    pub fn first(&self) -> Option<NonNull<Slab<WORDS>>> {
        self.first
    }

    pub fn last(&self) -> Option<NonNull<Slab<WORDS>>> {
        self.last
    }

    /// # Safety
    /// The slab is on no list, and stays valid while it is on this one (Linked).
    pub unsafe fn push_back(&mut self, mut slab: NonNull<Slab<WORDS>>) {
        // SAFETY: the caller's promise, and Linked for the last one.
        unsafe {
            slab.as_mut().prev = self.last;
            slab.as_mut().next = None;
            match self.last {
                Some(mut last) => last.as_mut().next = Some(slab),
                None => self.first = Some(slab),
            }
        }
        self.last = Some(slab);
    }

    /// # Safety
    /// The slab is on this list.
    pub unsafe fn remove(&mut self, slab: NonNull<Slab<WORDS>>) {
        // SAFETY: Linked, for the slab and its neighbours.
        unsafe {
            let (prev, next) = (slab.as_ref().prev, slab.as_ref().next);
            match prev {
                Some(mut prev) => prev.as_mut().next = next,
                None => self.first = next,
            }
            match next {
                Some(mut next) => next.as_mut().prev = prev,
                None => self.last = prev,
            }
        }
    }
}
