//! The depots that all threads share, one per class, and their slabs as spans.

use core::ptr::NonNull;

use slab::{BadFree, CLASSES, Class, Depot, Geometry, Magazine, Round, Slab, SlabSource};

use crate::lock::{Guard, Lock};
use crate::map::{self, UNIT};
use crate::report;
use crate::segment::{Segment, WORDS};
use crate::spans;
use crate::{stats, storage};

/// Bytes of objects that a depot's stock holds at most, and their number.
const STOCK_BYTES: usize = 512 << 10;
const STOCK_ROUNDS: usize = 4096;

static DEPOTS: [Lock<Depot<WORDS>>; CLASSES + 1] = {
    let mut depots = [const { Lock::new(Depot::new(GEOMETRIES[1])) }; CLASSES + 1];
    let mut class = 1;
    while class <= CLASSES {
        depots[class] = Lock::new(Depot::new(GEOMETRIES[class]));
        class += 1;
    }
    depots
};

const GEOMETRIES: [Geometry; CLASSES + 1] = {
    let mut geometries = [Geometry::new(16, UNIT, 0); CLASSES + 1];
    let mut class = 1;
    while class <= CLASSES {
        if let Some(named) = Class::from_index(class) {
            geometries[class] = Geometry::new(named.bytes(), slab_bytes(named.bytes()), 0);
        }
        class += 1;
    }
    geometries
};

/// The shortest slab with four objects of which at most a sixteenth is left over.
pub const fn slab_bytes(object_bytes: usize) -> usize {
    let mut bytes = UNIT;
    while bytes < 128 << 10 && (bytes / object_bytes < 4 || (bytes % object_bytes) * 16 > bytes) {
        bytes += UNIT;
    }
    bytes
}

/// Slabs as spans whose units have one value in the map.
pub struct Slabs(pub u8);

impl Slabs {
    fn of(class: Class) -> Self {
        Self(class.index() as u8)
    }
}

// SAFETY: a span is used by one owner (**Header**) and aligned to a unit, which is more
// than any power of two that divides an object's size but 32 KiB; those are told apart by
// `slow::aligned`. The header finds a span's first unit from each of its units.
unsafe impl SlabSource<WORDS> for Slabs {
    fn slab(&mut self, geometry: &Geometry) -> Option<NonNull<Slab<WORDS>>> {
        let units = geometry.slab_bytes() / UNIT;
        let (base, _) = spans::lock().alloc(units)?;
        let slab = Segment::slab_of(Segment::of(base), base);
        // SAFETY: **Header**: the description belongs to the new slab.
        unsafe { slab.write(Slab::new(base, geometry)) };
        map::set(base.as_ptr(), units, self.0);
        Some(slab)
    }

    fn release(&mut self, slab: NonNull<Slab<WORDS>>, geometry: &Geometry) {
        // SAFETY: the slab is the depot's until now.
        let base = unsafe { slab.as_ref() }.base();
        map::set(base.as_ptr(), geometry.slab_bytes() / UNIT, map::NOTHING);
        spans::lock().free(base);
    }

    fn slab_of(&self, object: Round, _: &Geometry) -> NonNull<Slab<WORDS>> {
        Segment::slab_of(Segment::of(object), object)
    }
}

/// Moves up to `count` free objects of a class into `into`; returns how many.
pub fn take(class: Class, count: usize, into: &mut Magazine) -> usize {
    let mut depot = DEPOTS[class.index()].lock();
    let taken = depot.take(count, into, &mut Slabs::of(class));
    note(class, &depot);
    taken
}

/// Takes the `count` oldest objects of `from` back.
pub fn give(class: Class, count: usize, from: &mut Magazine) {
    let mut depot = DEPOTS[class.index()].lock();
    if !depot.has_stock() {
        provide(class, &mut depot);
    }
    check(depot.give(count, from, &mut Slabs::of(class)), class);
    note(class, &depot);
}

fn note(class: Class, depot: &Depot<WORDS>) {
    stats::note_depot(class.index(), depot.stats(), depot.geometry());
}

fn provide(class: Class, depot: &mut Guard<Depot<WORDS>>) {
    let rounds = (STOCK_BYTES / class.bytes()).clamp(4, STOCK_ROUNDS);
    if let Some(storage) = storage::get(rounds.ilog2()) {
        // SAFETY: the storage is the stock's for good.
        unsafe { depot.lend(storage, 1 << rounds.ilog2()) };
    }
}

/// Returns what lay idle in all depots, or everything that is free, to the spans.
pub fn trim(all: bool) {
    for class in Class::all() {
        let mut depot = DEPOTS[class.index()].lock();
        let result = if all {
            depot.purge(&mut Slabs::of(class))
        } else {
            depot.trim(&mut Slabs::of(class))
        };
        check(result, class);
        note(class, &depot);
    }
}

fn check(result: Result<(), BadFree>, class: Class) {
    if let Err(bad) = result {
        report::bad_free(bad, class);
    }
}

/// For `fork`.
pub fn acquire() {
    DEPOTS.iter().for_each(Lock::acquire);
}

/// For `fork`.
pub fn release() {
    DEPOTS.iter().for_each(Lock::release);
}
