//! Which sizes have caches: the classes of `core/slab`, or what `UMEM_OPTIONS` makes of them.
//!
//! The problem: malloc computes a class from a size with constants, which is what makes it
//! short; but `size_add`, `size_remove` and `size_clear` change which sizes there are.
//!
//! The idea: a class whose range of sizes is changed never gets a magazine in its own place.
//! So its requests take the slow path by themselves, and there a table tells which cache
//! serves them. The caches that are new have places of their own behind the constant ones,
//! with magazines: a request for them is a slow path that ends in a pop, and their release
//! is the usual push, as the map of addresses names the place.
//!
//! Invariant **Sizes**: the table changes only before the first allocation.

use core::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};

use slab::{CLASSES, Class};

/// Sizes that may be added.
pub const ADDED: usize = 24;
/// Bytes of the largest size that may be added.
pub const LARGEST_ADDED: usize = 128 << 10;
/// Places for caches: each size that is added may move the class whose range it divides.
pub const PLACES: usize = CLASSES + 2 * ADDED;
/// What sizes are rounded up to, as libumem does, and the distance of their objects.
const STEP: usize = 8;
const OBJECT_STEP: usize = 16;

/// The longest request of each place; 0 where there is no cache.
static LIMITS: [AtomicU32; PLACES + 1] = {
    let mut limits = [const { AtomicU32::new(0) }; PLACES + 1];
    let mut index = 1;
    while let Some(class) = Class::from_index(index) {
        limits[index] = AtomicU32::new(class.bytes() as u32);
        index += 1;
    }
    limits
};
static IS_CHANGED: AtomicBool = AtomicBool::new(false);

/// A place that has a cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SizeClass(u8);

impl SizeClass {
    /// The cache for requests of `size` bytes, if one is large enough.
    pub fn of_size(size: usize) -> Option<Self> {
        if !IS_CHANGED.load(Relaxed) {
            return Class::of_size(size.max(1)).map(|class| Self(class.index() as u8));
        }
        Self::all()
            .filter(|class| class.limit() >= size)
            .min_by_key(|class| class.limit())
    }

    /// The cache of a place, or of a value in the map of addresses.
    pub fn from_index(index: usize) -> Option<Self> {
        let limit = LIMITS.get(index)?.load(Relaxed);
        (limit > 0).then_some(Self(index as u8))
    }

    /// Every cache, in the order of places.
    pub fn all() -> impl Iterator<Item = Self> {
        (1..=PLACES).filter_map(Self::from_index)
    }

    /// Its place.
    pub fn index(self) -> usize {
        self.0 as usize
    }

    /// Bytes of the longest request that it serves.
    pub fn limit(self) -> usize {
        LIMITS[self.index()].load(Relaxed) as usize
    }

    /// Bytes from one object to the next.
    pub fn bytes(self) -> usize {
        self.limit().next_multiple_of(OBJECT_STEP)
    }
}

/// Why a size is not added or removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SizeError {
    /// It is 0 or larger than [`LARGEST_ADDED`].
    OutOfRange,
    /// There is a cache of this size.
    Exists,
    /// There is none.
    Missing,
    /// It is the largest, which stays.
    Largest,
    /// More than [`ADDED`] sizes.
    TooMany,
}

/// Sizes in the making, in ascending order.
#[derive(Clone)]
pub struct Sizes {
    limits: [u32; CLASSES + ADDED],
    count: usize,
}

impl Sizes {
    /// The classes of `core/slab`.
    pub fn new() -> Self {
        let mut limits = [0; CLASSES + ADDED];
        for (limit, class) in limits.iter_mut().zip(Class::all()) {
            *limit = class.bytes() as u32;
        }
        Self {
            limits,
            count: CLASSES,
        }
    }

    /// The sizes.
    pub fn limits(&self) -> &[u32] {
        &self.limits[..self.count]
    }

    /// Adds a size, rounded up to 8 bytes. Returns what it was rounded to.
    pub fn add(&mut self, size: usize) -> Result<usize, SizeError> {
        if size == 0 || size > LARGEST_ADDED {
            return Err(SizeError::OutOfRange);
        }
        let limit = size.next_multiple_of(STEP) as u32;
        let Err(place) = self.limits().binary_search(&limit) else {
            return Err(SizeError::Exists);
        };
        if !is_constant(limit) && self.added() == ADDED {
            return Err(SizeError::TooMany);
        }
        self.limits[place..=self.count].rotate_right(1);
        self.limits[place] = limit;
        self.count += 1;
        Ok(limit as usize)
    }

    /// Removes a size. Its requests go to the next larger one.
    pub fn remove(&mut self, size: usize) -> Result<(), SizeError> {
        let wanted = u32::try_from(size).map_err(|_| SizeError::Missing)?;
        let found = self.limits().binary_search(&wanted);
        let place = found.map_err(|_| SizeError::Missing)?;
        if place + 1 == self.count {
            return Err(SizeError::Largest);
        }
        self.limits[place..self.count].rotate_left(1);
        self.count -= 1;
        Ok(())
    }

    /// Removes all but the largest that there may be.
    pub fn clear(&mut self) {
        self.limits[0] = LARGEST_ADDED as u32;
        self.count = 1;
    }

    fn added(&self) -> usize {
        let limits = self.limits().iter();
        limits.filter(|&&limit| !is_constant(limit)).count()
    }

    /// The sizes above `above`, up to `most`.
    fn within(&self, above: u32, most: u32) -> &[u32] {
        let limits = self.limits();
        let place = |bound| limits.partition_point(|&limit| limit <= bound);
        &limits[place(above)..place(most)]
    }

    /// Calls `place` with the place of each size and the size. A class keeps its own if all
    /// requests that the hit path takes for it are still its own.
    fn for_each_place(&self, mut place: impl FnMut(usize, u32)) {
        let (mut spare, mut below) = (CLASSES, 0);
        let ranges = Class::all().map(|class| (class.index(), class.bytes() as u32));
        for (index, most) in ranges.chain([(0, u32::MAX)]) {
            match *self.within(below, most) {
                [limit] if limit == most => place(index, limit),
                ref divided => divided.iter().for_each(|&limit| {
                    spare += 1;
                    place(spare, limit);
                }),
            }
            below = most;
        }
    }

    /// Makes them the sizes of this program; see **Sizes**. Calls `found` with each new cache.
    pub fn install(&self, mut found: impl FnMut(SizeClass)) {
        LIMITS.iter().for_each(|limit| limit.store(0, Relaxed));
        self.for_each_place(|index, limit| {
            LIMITS[index].store(limit, Relaxed);
            if index > CLASSES {
                found(SizeClass(index as u8));
            }
        });
        IS_CHANGED.store(true, Relaxed);
    }
}

/// Whether a class of `core/slab` has this size.
fn is_constant(limit: u32) -> bool {
    Class::of_size(limit as usize).is_some_and(|class| class.bytes() == limit as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places(sizes: &Sizes) -> Vec<(usize, u32)> {
        let mut places = Vec::new();
        sizes.for_each_place(|index, limit| places.push((index, limit)));
        places
    }

    #[test]
    fn without_options_each_class_has_its_own_place() {
        let own = Class::all().map(|class| (class.index(), class.bytes() as u32));
        assert_eq!(places(&Sizes::new()), own.collect::<Vec<_>>());
    }

    #[test]
    fn an_added_size_is_rounded_and_moves_the_class_that_it_divides() {
        let mut sizes = Sizes::new();
        assert_eq!(sizes.add(100), Ok(104));
        assert_eq!(sizes.add(97), Err(SizeError::Exists));
        assert_eq!(sizes.add(512), Err(SizeError::Exists));
        assert_eq!(sizes.add(LARGEST_ADDED), Ok(LARGEST_ADDED));
        assert_eq!(sizes.add(LARGEST_ADDED + 1), Err(SizeError::OutOfRange));
        assert_eq!(sizes.add(0), Err(SizeError::OutOfRange));
        let placed = places(&sizes);
        assert!(placed.contains(&(57, 104)) && placed.contains(&(58, 112)));
        assert!(placed.contains(&(6, 96)) && placed.contains(&(8, 128)));
        assert!(placed.contains(&(59, LARGEST_ADDED as u32)));
        assert_eq!(placed.len(), CLASSES + 2);
    }

    #[test]
    fn a_removed_size_leaves_its_place_empty_and_the_largest_stays() {
        let mut sizes = Sizes::new();
        assert_eq!(sizes.remove(64), Ok(()));
        assert_eq!(sizes.remove(64), Err(SizeError::Missing));
        assert_eq!(sizes.remove(32 << 10), Err(SizeError::Largest));
        assert!(places(&sizes).iter().all(|&(index, _)| index != 4));
        sizes.clear();
        assert_eq!(places(&sizes), [(57, LARGEST_ADDED as u32)]);
        assert_eq!(sizes.remove(LARGEST_ADDED), Err(SizeError::Largest));
        assert_eq!(sizes.add(64), Ok(64));
        assert_eq!(places(&sizes), [(4, 64), (57, LARGEST_ADDED as u32)]);
    }

    #[test]
    fn every_choice_of_sizes_has_a_place_for_each() {
        let mut random = 0x5eed_u64;
        for round in 0..300 {
            let mut sizes = Sizes::new();
            for _ in 0..200 {
                random = random
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1);
                let size = (random >> 33) as usize % [600, 2 * LARGEST_ADDED][round % 2];
                let _ = match random >> 62 {
                    0 => sizes.remove(size & !15),
                    _ => sizes.add(size).map(|_| ()),
                };
            }
            assert!(
                sizes.limits().is_sorted() && sizes.added() <= ADDED,
                "round {round}"
            );
            let mut placed = places(&sizes);
            assert_eq!(placed.len(), sizes.limits().len(), "round {round}");
            placed.sort_unstable();
            placed.dedup_by_key(|place| place.0);
            assert_eq!(placed.len(), sizes.limits().len(), "round {round}");
            assert!(
                placed.iter().all(|&(index, _)| index <= PLACES),
                "round {round}"
            );
        }
    }
}
