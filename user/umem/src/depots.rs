//! The depots that all threads share, one per class, and their slabs as spans.

use core::ptr::NonNull;
use core::sync::atomic::{AtomicU8, AtomicU32, Ordering::Relaxed};

use slab::{BadFree, CLASSES, Class, Depot, Geometry, Magazine, Round, Slab, SlabSource};

use crate::lock::{Guard, Lock};
use crate::map::{self, UNIT};
use crate::segment::{Segment, WORDS};
use crate::sizes::{PLACES, SizeClass};
use crate::{report, settings, spans, stats, storage};

/// Bytes of objects that a depot's stock holds at most, and their number.
const STOCK_BYTES: usize = 512 << 10;
const STOCK_ROUNDS: usize = 4096;
/// Bytes of a slab, at most.
const LONGEST_SLAB: usize = 128 << 10;

/// Steps by which the batches of a class that threads wait for grow.
const MOST_STEPS: u8 = 3;

static DEPOTS: [Lock<Depot<WORDS>>; PLACES + 1] = {
    let mut depots = [const { Lock::new(Depot::new(GEOMETRIES[1])) }; PLACES + 1];
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

/// How often threads waited for each depot in this interval, and what came of it.
static WAITS: [AtomicU32; PLACES + 1] = [const { AtomicU32::new(0) }; PLACES + 1];
static STEPS: [AtomicU8; PLACES + 1] = [const { AtomicU8::new(0) }; PLACES + 1];

/// The shortest slab with four objects of which at most a sixteenth is left over; of large
/// objects one.
pub const fn slab_bytes(object_bytes: usize) -> usize {
    if object_bytes > LONGEST_SLAB / 4 {
        return object_bytes.next_multiple_of(UNIT);
    }
    let mut bytes = UNIT;
    while bytes < LONGEST_SLAB && (bytes / object_bytes < 4 || (bytes % object_bytes) * 16 > bytes)
    {
        bytes += UNIT;
    }
    bytes
}

/// Cuts the slabs of a cache that the options made; see **Sizes**.
pub fn set_up(class: SizeClass) {
    let geometry = Geometry::new(class.bytes(), slab_bytes(class.bytes()), 0);
    *DEPOTS[class.index()].lock() = Depot::new(geometry);
}

/// Slabs as spans whose units have one value in the map.
pub struct Slabs(pub u8);

impl Slabs {
    fn of(class: SizeClass) -> Self {
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
pub fn take(class: SizeClass, count: usize, into: &mut Magazine) -> usize {
    let mut depot = lock(class);
    let taken = depot.take(count, into, &mut Slabs::of(class));
    note(class, &depot);
    taken
}

/// Takes the `count` oldest objects of `from` back.
pub fn give(class: SizeClass, count: usize, from: &mut Magazine) {
    let mut depot = lock(class);
    if !depot.has_stock() && settings::has_magazines() {
        provide(class, &mut depot);
    }
    check(depot.give(count, from, &mut Slabs::of(class)), class);
    note(class, &depot);
}

/// How often the batches of a class have doubled.
pub fn steps(class: SizeClass) -> u8 {
    STEPS[class.index()].load(Relaxed)
}

fn lock(class: SizeClass) -> Guard<'static, Depot<WORDS>> {
    let (depot, has_waited) = DEPOTS[class.index()].lock_noting();
    if has_waited {
        // The lock is held: nobody else counts.
        let waits = &WAITS[class.index()];
        waits.store(waits.load(Relaxed).saturating_add(1), Relaxed);
    }
    depot
}

fn note(class: SizeClass, depot: &Depot<WORDS>) {
    stats::note_depot(class, depot.stats(), depot.geometry());
}

fn provide(class: SizeClass, depot: &mut Guard<Depot<WORDS>>) {
    let rounds = (STOCK_BYTES / class.bytes()).clamp(4, STOCK_ROUNDS);
    if let Some(storage) = storage::get(rounds.ilog2()) {
        // SAFETY: the storage is the stock's for good.
        unsafe { depot.lend(storage, 1 << rounds.ilog2()) };
    }
}

/// Ends an interval: returns what lay idle in all depots to the spans. Threads fetch more at
/// once from a depot for which they waited more often than `max_contention`.
pub fn reap() {
    for class in SizeClass::all() {
        trim(class, Depot::trim);
        let (waits, steps) = (&WAITS[class.index()], &STEPS[class.index()]);
        if waits.swap(0, Relaxed) > settings::max_contention() {
            steps.store((steps.load(Relaxed) + 1).min(MOST_STEPS), Relaxed);
        }
    }
}

/// Returns everything that is free to the spans.
pub fn purge() {
    SizeClass::all().for_each(|class| trim(class, Depot::purge));
}

fn trim(class: SizeClass, work: fn(&mut Depot<WORDS>, &mut Slabs) -> Result<(), BadFree>) {
    let mut depot = DEPOTS[class.index()].lock();
    check(work(&mut depot, &mut Slabs::of(class)), class);
    note(class, &depot);
}

/// Whether no depot and not the spans below are locked, at this moment.
pub fn are_free() -> bool {
    DEPOTS.iter().all(Lock::is_free) && spans::is_free()
}

fn check(result: Result<(), BadFree>, class: SizeClass) {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_depot_that_threads_wait_for_gives_more_at_once() {
        // Nothing in this test's program uses this class.
        let class = SizeClass::of_size(28 << 10).expect("there is a cache");
        let interval = |waits| {
            WAITS[class.index()].store(waits, Relaxed);
            reap();
            steps(class)
        };
        assert_eq!(interval(2), 0);
        assert_eq!([3, 0, 99].map(interval), [1, 1, 2]);
        assert_eq!([9, 9, 9].map(interval), [3, 3, 3]);
    }
}
