//! Caches of objects that stay constructed while they are free.

use core::ptr::NonNull;

use crate::depot::{Depot, DepotStats, SlabSource};
use crate::geometry::Geometry;
use crate::magazine::{Magazine, Round};
use crate::slab::BadFree;

/// Objects of one type. What makes an object worth keeping (its locks, its links) is made
/// by `construct` when the object leaves its slab and undone by `destruct` when it
/// returns there; in between it is allocated and freed as it is.
pub struct ObjectCache<const WORDS: usize, C> {
    depot: Depot<WORDS>,
    /// Constructed objects.
    ready: Magazine,
    construct: C,
    taken: u64,
    failed: u64,
}

/// How the objects of a cache come into being and go.
pub trait Construct {
    /// Makes an object; `false` if it cannot.
    fn construct(&mut self, object: Round) -> bool;

    /// Undoes what `construct` did.
    fn destruct(&mut self, object: Round);
}

impl<const WORDS: usize, C: Construct> ObjectCache<WORDS, C> {
    /// An empty cache. `ready` keeps the constructed objects: it has storage.
    pub const fn new(geometry: Geometry, ready: Magazine, construct: C) -> Self {
        Self {
            depot: Depot::new(geometry),
            ready,
            construct,
            taken: 0,
            failed: 0,
        }
    }

    /// A constructed object, or `None` when memory is short or the constructor fails.
    pub fn alloc(&mut self, source: &mut impl SlabSource<WORDS>) -> Option<Round> {
        let object = self.take(source);
        self.taken += u64::from(object.is_some());
        self.failed += u64::from(object.is_none());
        object
    }

    fn take(&mut self, source: &mut impl SlabSource<WORDS>) -> Option<Round> {
        if let Some(object) = self.ready.pop() {
            return Some(object);
        }
        self.depot.take(1, &mut self.ready, source);
        let object = self.ready.pop()?;
        if self.construct.construct(object) {
            return Some(object);
        }
        self.ready.push(object);
        // The object came out of its slab just now, so the slab takes it back.
        let _ = self.depot.give(1, &mut self.ready, source);
        None
    }

    /// Takes back an object in its constructed state.
    pub fn free(
        &mut self,
        object: Round,
        source: &mut impl SlabSource<WORDS>,
    ) -> Result<(), BadFree> {
        if self.ready.push(object) {
            return Ok(());
        }
        self.destroy(self.ready.len().div_ceil(2), source)?;
        self.ready.push(object);
        Ok(())
    }

    fn destroy(
        &mut self,
        count: usize,
        source: &mut impl SlabSource<WORDS>,
    ) -> Result<(), BadFree> {
        for &object in &self.ready.rounds()[..count] {
            self.construct.destruct(object);
        }
        self.depot.give(count, &mut self.ready, source)
    }

    /// Destructs and returns every object that is free.
    pub fn purge(&mut self, source: &mut impl SlabSource<WORDS>) -> Result<(), BadFree> {
        self.destroy(self.ready.len(), source)?;
        self.depot.purge(source)
    }

    /// Ends the cache: the storage of its constructed objects, of which none is left.
    pub fn into_storage(mut self) -> Option<NonNull<Round>> {
        // SAFETY: nothing is loaded.
        NonNull::new(unsafe { self.ready.lend(NonNull::dangling(), 0) })
    }

    /// What it has and did; constructed objects count as free.
    pub fn stats(&self) -> DepotStats {
        let depot = self.depot.stats();
        DepotStats {
            slabs: depot.slabs,
            free: depot.free + self.ready.len(),
            taken: self.taken,
            failed: self.failed,
        }
    }

    /// How its slabs are cut.
    pub const fn geometry(&self) -> &Geometry {
        self.depot.geometry()
    }

    /// Constructed objects that are free.
    pub fn ready(&self) -> usize {
        self.ready.len()
    }
}
