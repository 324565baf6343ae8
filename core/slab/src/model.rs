//! Random operations of two heaps against a list of what is allocated.

use core::alloc::Layout;
use core::ptr::NonNull;
use std::boxed::Box;
use std::collections::BTreeMap;
use std::vec::Vec;

use models::Random;

use crate::{Class, Depot, Geometry, LocalHeap, Magazine, Round, Slab, SlabSource};

pub const WORDS: usize = 4;

/// Slabs from the host's allocator, at most a given number at a time.
pub struct HostSlabs {
    left: usize,
    used: BTreeMap<usize, Box<Slab<WORDS>>>,
}

impl HostSlabs {
    pub fn new(slabs: usize) -> Self {
        Self {
            left: slabs,
            used: BTreeMap::new(),
        }
    }

    /// Slabs in use.
    pub fn used(&self) -> usize {
        self.used.len()
    }
}

fn pages(geometry: &Geometry) -> Layout {
    Layout::from_size_align(geometry.slab_bytes(), 4096).unwrap()
}

// SAFETY: the host's allocator gives each slab once; `used` finds it by its addresses.
unsafe impl SlabSource<WORDS> for HostSlabs {
    fn slab(&mut self, geometry: &Geometry) -> Option<NonNull<Slab<WORDS>>> {
        self.left = self.left.checked_sub(1)?;
        // SAFETY: the layout is not empty.
        let base = NonNull::new(unsafe { std::alloc::alloc(pages(geometry)) })?;
        let slab = self
            .used
            .entry(base.addr().get())
            .or_insert_with(|| Box::new(Slab::new(base, geometry)));
        Some(NonNull::from(slab.as_mut()))
    }

    fn release(&mut self, slab: NonNull<Slab<WORDS>>, geometry: &Geometry) {
        self.left += 1;
        // SAFETY: the depot is done with the slab.
        let base = unsafe { slab.as_ref() }.base();
        assert!(
            self.used.remove(&base.addr().get()).is_some(),
            "it was given"
        );
        // SAFETY: `slab` allocated it with this layout.
        unsafe { std::alloc::dealloc(base.as_ptr(), pages(geometry)) };
    }

    fn slab_of(&self, object: Round, _: &Geometry) -> NonNull<Slab<WORDS>> {
        let (_, slab) = self.used.range(..=object.addr().get()).next_back().unwrap();
        NonNull::from(slab.as_ref())
    }
}

/// A magazine with storage of its own.
pub fn magazine(capacity: usize) -> Magazine {
    let mut magazine = Magazine::new();
    let storage = Vec::<Round>::with_capacity(capacity).leak();
    // SAFETY: the storage is leaked to the magazine.
    unsafe { magazine.lend(NonNull::from(storage).cast(), capacity) };
    magazine
}

const CAPACITY: usize = 16;

struct Machine {
    heaps: [LocalHeap; 2],
    depots: Vec<Depot<WORDS>>,
    source: HostSlabs,
    /// First byte and class of what is allocated, and the order of allocation.
    live: BTreeMap<usize, Class>,
    order: Vec<usize>,
}

impl Machine {
    /// Two CPUs and the classes up to 2048 bytes.
    fn new() -> Self {
        let classes: Vec<Class> = Class::all()
            .take_while(|class| class.bytes() <= 2048)
            .collect();
        let geometry = |class: &Class| {
            Geometry::new(
                class.bytes(),
                if class.bytes() > 512 { 8192 } else { 4096 },
                0,
            )
        };
        let mut heaps = [LocalHeap::new(), LocalHeap::new()];
        for heap in &mut heaps {
            classes
                .iter()
                .for_each(|&class| *heap.magazine(class) = magazine(CAPACITY));
        }
        let mut depots: Vec<_> = classes
            .iter()
            .map(|class| Depot::new(geometry(class)))
            .collect();
        for depot in &mut depots {
            let storage = Vec::<Round>::with_capacity(CAPACITY).leak();
            // SAFETY: the storage is leaked to the stock.
            unsafe { depot.lend(NonNull::from(storage).cast(), CAPACITY) };
        }
        Self {
            heaps,
            depots,
            source: HostSlabs::new(2000),
            live: BTreeMap::new(),
            order: Vec::new(),
        }
    }

    fn alloc(&mut self, cpu: usize, size: usize) {
        let class = Class::of_size(size).unwrap();
        let depot = &mut self.depots[class.index() - 1];
        let heap = &mut self.heaps[cpu];
        let object = heap.alloc(class).or_else(|| {
            heap.refill(class, CAPACITY / 2, depot, &mut self.source);
            heap.alloc(class)
        });
        let address = object.expect("there are slabs enough").addr().get();
        let before = self.live.range(..=address).next_back();
        assert!(
            before.is_none_or(|(start, class)| start + class.bytes() <= address),
            "overlap"
        );
        let after = self.live.range(address..).next();
        assert!(
            after.is_none_or(|(&start, _)| address + class.bytes() <= start),
            "overlap"
        );
        self.live.insert(address, class);
        self.order.push(address);
    }

    fn free(&mut self, cpu: usize, chosen: usize) {
        let address = self.order.swap_remove(chosen);
        let class = self.live.remove(&address).expect("it is allocated");
        let object = NonNull::new(core::ptr::with_exposed_provenance_mut(address)).unwrap();
        let heap = &mut self.heaps[cpu];
        // SAFETY: it was allocated with this class and is forgotten by now.
        if unsafe { heap.free(class, object) } {
            return;
        }
        let depot = &mut self.depots[class.index() - 1];
        heap.drain(class, CAPACITY / 2, depot, &mut self.source)
            .expect("every object is freed once");
        assert!(heap.magazine(class).push(object));
    }

    fn free_everything(&mut self) {
        while !self.order.is_empty() {
            self.free(0, self.order.len() - 1);
        }
        for (index, depot) in self.depots.iter_mut().enumerate() {
            for heap in &mut self.heaps {
                let magazine = heap.magazine(Class::from_index(index + 1).unwrap());
                depot
                    .give(magazine.len(), magazine, &mut self.source)
                    .unwrap();
            }
            depot.purge(&mut self.source).unwrap();
            assert_eq!(depot.stats().free, 0);
        }
    }
}

#[test]
fn live_objects_never_overlap_and_every_slab_comes_back() {
    let seeds = match std::env::var("SEED") {
        Ok(seed) => std::vec![seed.parse().unwrap()],
        Err(_) => (1..=4).collect::<Vec<u64>>(),
    };
    for seed in seeds {
        std::println!("SEED={seed}");
        let mut random = Random::new(seed);
        let mut machine = Machine::new();
        for step in 0..40_000 {
            let cpu = random.below(2);
            // The heap grows and shrinks in turns, so that slabs become empty.
            let grows = if step / 5_000 % 2 == 0 { 60 } else { 40 };
            if machine.order.is_empty() || random.below(100) < grows {
                machine.alloc(cpu, 1 + random.below(2048));
            } else {
                let chosen = random.below(machine.order.len());
                machine.free(cpu, chosen);
            }
            if random.below(1000) == 0 {
                let class = random.below(machine.depots.len());
                machine.depots[class].trim(&mut machine.source).unwrap();
            }
        }
        machine.free_everything();
        assert_eq!(machine.source.used(), 0, "SEED={seed}");
    }
}
