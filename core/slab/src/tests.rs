//! What each part promises, by example.

use core::alloc::Layout;
use core::ptr::NonNull;
use std::boxed::Box;
use std::vec::Vec;

use crate::model::{HostSlabs, WORDS, magazine};
use crate::{BadFree, Class, Construct, Depot, Geometry, LARGEST, LocalHeap, ObjectCache, Round};

fn layout(size: usize, align: usize) -> Layout {
    Layout::from_size_align(size, align).unwrap()
}

#[test]
fn every_layout_gets_a_class_that_is_long_and_aligned_enough() {
    for size in 1..=LARGEST {
        let class = Class::of_size(size).unwrap();
        assert!(class.bytes() >= size);
        let waste = class.bytes() - size;
        assert!(waste < 16 || waste * 5 <= class.bytes(), "{size}");
        for align in [1, 16, 32, 64, 256] {
            let Some(class) = Class::of_layout(layout(size, align)) else {
                continue;
            };
            assert!(class.bytes() >= size);
            assert!(align <= 16 || class.bytes().is_multiple_of(align));
        }
    }
    assert_eq!(Class::of_size(LARGEST + 1), None);
    assert_eq!(Class::of_size(0), Some(Class::NONE));
}

#[test]
fn the_reciprocal_divides_every_offset_exactly() {
    for class in Class::all() {
        let geometry = Geometry::new(class.bytes(), 128 << 10, 0);
        for offset in 0..128 << 10 {
            let index = offset / class.bytes();
            let is_start = offset % class.bytes() == 0 && index < geometry.objects();
            assert_eq!(geometry.index_of(offset), is_start.then_some(index));
        }
    }
}

#[test]
fn an_object_that_is_freed_twice_is_found_by_its_slab() {
    let (mut depot, mut source) = (Depot::new(Geometry::new(64, 4096, 0)), HostSlabs::new(9));
    let mut held = magazine(8);
    assert_eq!(depot.take(2, &mut held, &mut source), 2);
    let object = held.pop().unwrap();
    assert_eq!(depot.put(object, &mut source), Ok(()));
    assert_eq!(depot.put(object, &mut source), Err(BadFree::Twice(object)));
    let inside = object.map_addr(|address| address.saturating_add(8));
    assert_eq!(depot.put(inside, &mut source), Err(BadFree::Inside(inside)));
}

#[test]
fn slabs_return_to_the_source_when_their_objects_are_free() {
    let (mut depot, mut source) = (Depot::new(Geometry::new(64, 4096, 0)), HostSlabs::new(99));
    let mut held = magazine(6400);
    assert_eq!(depot.take(6400, &mut held, &mut source), 6336);
    assert_eq!((source.used(), depot.stats().failed), (99, 0));
    depot.give(6336, &mut held, &mut source).unwrap();
    assert_eq!(source.used(), 1, "one is kept for the next object");
    depot.purge(&mut source).unwrap();
    assert_eq!((source.used(), depot.stats().free), (0, 0));
}

#[test]
fn objects_that_rested_in_the_stock_for_an_interval_return_to_their_slabs() {
    let (mut depot, mut source) = (Depot::new(Geometry::new(64, 4096, 0)), HostSlabs::new(9));
    let storage = Box::leak(Box::new([NonNull::<u8>::dangling(); 64]));
    // SAFETY: the storage is leaked to the stock.
    unsafe { depot.lend(NonNull::from(storage).cast(), 64) };
    let mut held = magazine(64);
    depot.take(64, &mut held, &mut source);
    depot.give(64, &mut held, &mut source).unwrap();
    depot.trim(&mut source).unwrap();
    assert_eq!(source.used(), 1, "they came within this interval");
    depot.trim(&mut source).unwrap();
    assert_eq!(source.used(), 0);
}

#[test]
fn a_source_without_slabs_is_no_object_and_a_counted_failure() {
    let (mut depot, mut source) = (Depot::new(Geometry::new(64, 4096, 0)), HostSlabs::new(0));
    assert_eq!(depot.take(5, &mut magazine(8), &mut source), 0);
    assert_eq!(depot.stats().failed, 1);
}

#[test]
fn a_heap_of_zeros_takes_the_slow_path_on_both_sides() {
    let mut heap = LocalHeap::<64>::new();
    let class = Class::of_size(64).unwrap();
    assert_eq!(heap.alloc(class), None);
    // SAFETY: the heap has no room, so it does not take the object.
    assert!(!unsafe { heap.free(class, NonNull::dangling()) });
}

#[test]
fn the_oldest_rounds_leave_first_and_the_newest_stay() {
    let rounds: Vec<Round> = (1..=6)
        .map(|n| NonNull::without_provenance(n.try_into().unwrap()))
        .collect();
    let (mut from, mut to) = (magazine(6), magazine(4));
    rounds.iter().for_each(|&round| assert!(from.push(round)));
    assert!(!from.push(rounds[0]));
    assert_eq!(from.move_oldest(4, &mut to), 4);
    assert_eq!((from.rounds(), to.rounds()), (&rounds[4..], &rounds[..4]));
    assert_eq!(from.move_oldest(2, &mut to), 0, "nothing fits");
}

struct Counter {
    alive: usize,
    fails: bool,
}

impl Construct for &mut Counter {
    fn construct(&mut self, _: Round) -> bool {
        self.alive += usize::from(!self.fails);
        !self.fails
    }

    fn destruct(&mut self, _: Round) {
        self.alive -= 1;
    }
}

#[test]
fn a_cached_object_is_constructed_once_and_destructed_once() {
    let mut counter = Counter {
        alive: 0,
        fails: false,
    };
    let mut source = HostSlabs::new(9);
    let mut cache =
        ObjectCache::<WORDS, _>::new(Geometry::new(64, 4096, 0), magazine(4), &mut counter);
    for _ in 0..10 {
        let objects: Vec<_> = (0..4).map(|_| cache.alloc(&mut source).unwrap()).collect();
        objects
            .into_iter()
            .for_each(|object| cache.free(object, &mut source).unwrap());
    }
    assert_eq!(cache.ready(), 4);
    cache.purge(&mut source).unwrap();
    assert_eq!((source.used(), counter.alive), (0, 0));
}

#[test]
fn a_constructor_that_fails_costs_no_object() {
    let mut counter = Counter {
        alive: 0,
        fails: true,
    };
    let mut source = HostSlabs::new(1);
    let mut cache =
        ObjectCache::<WORDS, _>::new(Geometry::new(64, 4096, 0), magazine(4), &mut counter);
    for _ in 0..1000 {
        assert_eq!(cache.alloc(&mut source), None);
    }
    assert_eq!(cache.stats().free, 64);
}
