//! The heap over pages of the host's.

use core::alloc::Layout;
use core::ptr::NonNull;
use std::collections::BTreeMap;
use std::vec::Vec;

use base::PAGE_BYTES;

use crate::{Class, Depot, LARGEST, LocalHeap, PageSource};

struct HostPages {
    left: usize,
}

// SAFETY: the host's allocator gives each page once; the tests leak them.
unsafe impl PageSource for HostPages {
    fn pages(&mut self, count: usize) -> Option<NonNull<u8>> {
        self.left = self.left.checked_sub(count)?;
        let layout = Layout::from_size_align(count * PAGE_BYTES, PAGE_BYTES).ok()?;
        // SAFETY: the layout is not empty.
        NonNull::new(unsafe { std::alloc::alloc(layout) })
    }
}

struct Cpus {
    heaps: [LocalHeap; 2],
    depot: Depot,
    source: HostPages,
}

impl Cpus {
    fn new(pages: usize) -> Self {
        let heaps = [LocalHeap::new(), LocalHeap::new()];
        Self {
            heaps,
            depot: Depot::new(),
            source: HostPages { left: pages },
        }
    }

    fn alloc(&mut self, cpu: usize, class: Class) -> Option<NonNull<u8>> {
        let heap = &mut self.heaps[cpu];
        heap.alloc(class).or_else(|| {
            let filled = heap.refill(class, &mut self.depot, &mut self.source);
            filled.then(|| heap.alloc(class)).flatten()
        })
    }

    fn free(&mut self, cpu: usize, class: Class, object: NonNull<u8>) {
        // SAFETY: the tests free what they allocated, once, with its class.
        if unsafe { self.heaps[cpu].free(class, object) } {
            self.heaps[cpu].drain(class, &mut self.depot);
        }
    }
}

fn layout(size: usize, align: usize) -> Layout {
    Layout::from_size_align(size, align).unwrap()
}

/// xorshift64*.
fn below(state: &mut u64, limit: usize) -> usize {
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    (state.wrapping_mul(0x2545_F491_4F6C_DD1D) % limit as u64) as usize
}

#[test]
fn every_layout_gets_a_class_that_is_long_and_aligned_enough() {
    for size in 0..=LARGEST {
        for align in [1, 16, 32, 64, 256] {
            let class = Class::of(layout(size, align)).unwrap();
            assert!(class.bytes() >= size);
            assert!(align <= 16 || class.bytes().is_multiple_of(align));
        }
    }
    assert_eq!(Class::of(layout(LARGEST + 1, 8)), None);
    assert_eq!(Class::of(layout(8, 4096)), None);
}

#[test]
fn live_objects_never_overlap_in_random_use_on_two_cpus() {
    for seed in 1..=4_u64 {
        let mut state = seed;
        let mut cpus = Cpus::new(4000);
        let mut live: BTreeMap<usize, Class> = BTreeMap::new();
        for _ in 0..30_000 {
            let cpu = below(&mut state, 2);
            if below(&mut state, 5) < 3 {
                let class = Class::of(layout(below(&mut state, LARGEST), 16)).unwrap();
                let address = cpus.alloc(cpu, class).unwrap().as_ptr() as usize;
                let before = live.range(..=address).next_back();
                assert!(
                    before.is_none_or(|(a, c)| a + c.bytes() <= address),
                    "SEED={seed}"
                );
                let after = live.range(address..).next();
                assert!(
                    after.is_none_or(|(&a, _)| address + class.bytes() <= a),
                    "SEED={seed}"
                );
                live.insert(address, class);
            } else if !live.is_empty() {
                let chosen = below(&mut state, live.len());
                let (&address, &class) = live.iter().nth(chosen.min(50)).unwrap();
                live.remove(&address);
                cpus.free(cpu, class, NonNull::new(address as *mut u8).unwrap());
            }
        }
    }
}

#[test]
fn objects_freed_on_another_cpu_come_back_through_the_depot() {
    let mut cpus = Cpus::new(8);
    let class = Class::of(layout(64, 8)).unwrap();
    for _ in 0..100 {
        let objects: Vec<_> = (0..200).map(|_| cpus.alloc(0, class).unwrap()).collect();
        objects
            .into_iter()
            .for_each(|object| cpus.free(1, class, object));
    }
    assert!(cpus.depot.pages() <= 8);
}

#[test]
fn a_source_without_pages_is_none_and_a_single_page_still_serves() {
    let class = Class::of(layout(2000, 8)).unwrap();
    assert!(Cpus::new(0).alloc(0, class).is_none());
    let mut cpus = Cpus::new(1);
    assert!(cpus.alloc(0, class).is_some() && cpus.alloc(0, class).is_some());
    assert!(cpus.alloc(0, class).is_none());
}
