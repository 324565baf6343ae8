//! What all local heaps share: a stock of free objects of one size, and their slabs.

use core::ptr::NonNull;

use crate::geometry::Geometry;
use crate::magazine::{Magazine, Round};
use crate::slab::{BadFree, Slab, SlabList};

/// Where slabs come from and go to.
///
/// # Safety
/// A slab's memory is writable, as long as the geometry says, aligned to the largest power
/// of two that divides the object's size, and used by nobody else. `slab_of` finds the
/// slab that `slab` gave for every object in it.
pub unsafe trait SlabSource<const WORDS: usize> {
    /// A new slab with all objects free, or `None` when memory is short.
    fn slab(&mut self, geometry: &Geometry) -> Option<NonNull<Slab<WORDS>>>;

    /// Takes back a slab that nobody uses any more.
    fn release(&mut self, slab: NonNull<Slab<WORDS>>, geometry: &Geometry);

    /// The slab in which an object of this geometry lies.
    fn slab_of(&self, object: Round, geometry: &Geometry) -> NonNull<Slab<WORDS>>;
}

/// What a depot has and did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DepotStats {
    /// Slabs that it has.
    pub slabs: usize,
    /// Objects that lie in its stock and in slabs.
    pub free: usize,
    /// Objects that it gave to local heaps so far.
    pub taken: u64,
    /// Times that it had none to give.
    pub failed: u64,
}

/// Free objects of one size. Callers hold a lock around it.
pub struct Depot<const WORDS: usize> {
    geometry: Geometry,
    stock: Magazine,
    partial: SlabList<WORDS>,
    /// Slabs on `partial` with all objects free.
    empty: usize,
    stats: DepotStats,
}

// SAFETY: Free and Linked: objects and slabs belong to the depot, whoever uses it.
unsafe impl<const WORDS: usize> Send for Depot<WORDS> {}

impl<const WORDS: usize> Depot<WORDS> {
    /// A depot with nothing in it. Without storage for its stock ([`Depot::lend`]) every
    /// exchange goes to the slabs.
    pub const fn new(geometry: Geometry) -> Self {
        Self {
            geometry,
            stock: Magazine::new(),
            partial: SlabList::new(),
            empty: 0,
            stats: DepotStats {
                slabs: 0,
                free: 0,
                taken: 0,
                failed: 0,
            },
        }
    }

    /// Gives the stock its storage.
    ///
    /// # Safety
    /// As [`Magazine::lend`], for good.
    pub unsafe fn lend(&mut self, storage: NonNull<Round>, capacity: usize) {
        // SAFETY: the caller's promise.
        unsafe { self.stock.lend(storage, capacity) };
    }

    /// Whether the stock has storage.
    pub fn has_stock(&self) -> bool {
        self.stock.capacity() > 0
    }

    /// How its slabs are cut.
    pub const fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    /// What it has and did.
    pub const fn stats(&self) -> DepotStats {
        self.stats
    }

    /// Loads up to `count` objects into `into`: from the stock, then from slabs. Returns
    /// how many; none if memory is short.
    pub fn take(
        &mut self,
        count: usize,
        into: &mut Magazine,
        source: &mut impl SlabSource<WORDS>,
    ) -> usize {
        let mut taken = self.stock.move_newest(count, into);
        let wanted = count.min(taken + into.room());
        while taken < wanted {
            let Some(mut slab) = self.partial.first().or_else(|| self.grow(source)) else {
                break;
            };
            // SAFETY: Linked.
            let found = unsafe { slab.as_mut() };
            if found.free_objects() == self.geometry.objects() {
                self.empty -= 1;
            }
            taken += found.take(&self.geometry, wanted - taken, into);
            if found.free_objects() == 0 {
                // SAFETY: it is the first on the list.
                unsafe { self.partial.remove(slab) };
            }
        }
        self.stats.free -= taken;
        self.stats.taken += taken as u64;
        self.stats.failed += u64::from(taken == 0);
        taken
    }

    #[cold]
    fn grow(&mut self, source: &mut impl SlabSource<WORDS>) -> Option<NonNull<Slab<WORDS>>> {
        let slab = source.slab(&self.geometry)?;
        // SAFETY: the source gave it to us alone.
        unsafe { self.partial.push_back(slab) };
        self.empty += 1;
        self.stats.slabs += 1;
        self.stats.free += self.geometry.objects();
        Some(slab)
    }

    /// Takes the `count` oldest objects of `from` back: into the stock as far as they fit,
    /// the rest into their slabs. After an error the object in it is forgotten, and the
    /// others that were to follow are still in `from`.
    pub fn give(
        &mut self,
        count: usize,
        from: &mut Magazine,
        source: &mut impl SlabSource<WORDS>,
    ) -> Result<(), BadFree> {
        let stocked = from.move_oldest(count, &mut self.stock);
        self.stats.free += stocked;
        let rest = (count - stocked).min(from.len());
        let (mut done, mut result) = (0, Ok(()));
        while done < rest && result.is_ok() {
            result = self.put(from.rounds()[done], source);
            done += 1;
        }
        if done > 0 {
            from.drop_oldest(done);
        }
        result
    }

    /// Returns one object to its slab, and the slab to the source if it is the second one
    /// without objects in use.
    pub fn put(
        &mut self,
        object: Round,
        source: &mut impl SlabSource<WORDS>,
    ) -> Result<(), BadFree> {
        let mut slab = source.slab_of(object, &self.geometry);
        // SAFETY: the source finds slabs of ours.
        let home = unsafe { slab.as_mut() };
        home.put(&self.geometry, object)?;
        self.stats.free += 1;
        if home.free_objects() == 1 {
            // SAFETY: Linked: it had no free object, so it was on no list.
            unsafe { self.partial.push_back(slab) };
        }
        if home.free_objects() == self.geometry.objects() {
            self.empty += 1;
            if self.empty > 1 {
                self.release(slab, source);
            }
        }
        Ok(())
    }

    fn release(&mut self, slab: NonNull<Slab<WORDS>>, source: &mut impl SlabSource<WORDS>) {
        // SAFETY: Linked: it has free objects.
        unsafe { self.partial.remove(slab) };
        self.empty -= 1;
        self.stats.slabs -= 1;
        self.stats.free -= self.geometry.objects();
        source.release(slab, &self.geometry);
    }

    /// Returns what nobody needed since the last call: objects that lay in the stock all
    /// the time, and slabs that are empty by then.
    pub fn trim(&mut self, source: &mut impl SlabSource<WORDS>) -> Result<(), BadFree> {
        let idle = self.stock.start_interval();
        self.shrink(idle, source)
    }

    /// Returns everything that is free.
    pub fn purge(&mut self, source: &mut impl SlabSource<WORDS>) -> Result<(), BadFree> {
        self.shrink(self.stock.len(), source)
    }

    fn shrink(
        &mut self,
        objects: usize,
        source: &mut impl SlabSource<WORDS>,
    ) -> Result<(), BadFree> {
        let (mut done, mut result) = (0, Ok(()));
        while done < objects && result.is_ok() {
            self.stats.free -= 1;
            result = self.put(self.stock.rounds()[done], source);
            done += 1;
        }
        if done > 0 {
            self.stock.drop_oldest(done);
        }
        let mut candidate = self.partial.last();
        while self.empty > 0
            && let Some(slab) = candidate
        {
            // SAFETY: Linked.
            let (prev, free) = unsafe { (slab.as_ref().prev(), slab.as_ref().free_objects()) };
            if free == self.geometry.objects() {
                self.release(slab, source);
            }
            candidate = prev;
        }
        result
    }
}
