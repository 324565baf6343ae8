//! The kernel's heap: Rust's `alloc` over slabs and extents.
//!
//! What is longer than the longest extent is put together of blocks (`vmalloc`). What can
//! be refused leaves the reserve alone (`fallible`).
//!
//! Each CPU has the magazines of a [`LocalHeap`]; all share the depots. A slab is one, two
//! or four frames with its description in the last bytes, so that an object's address and
//! its class, which the layout tells, are enough to find it.

use core::alloc::{GlobalAlloc, Layout};
use core::ptr::{NonNull, null_mut};
use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed};
use core::sync::atomic::{AtomicPtr, AtomicU64};

use base::{CpuId, PAGE_BYTES};
use frames::{Extent, Frame, Urgency};
use slab::{BadFree, Class, Depot, Geometry, LocalHeap, Round, Slab, SlabSource};

use super::{direct, fallible, ram, vmalloc};
use crate::cpu::{Own, Private, own};
use crate::sync::{Spin, SpinGuard};

/// Each CPU's part of the heap.
static LOCAL: Own<Private<LocalHeap>> = own!(Private<LocalHeap>, Private::new(LocalHeap::new()));
/// One depot per class, each behind its own lock; the first is not used. The heap is one, as Rust
/// has one global allocator.
static DEPOTS: [Spin<Depot<WORDS>>; CLASSES + 1] = depots();
/// Storage for the depots' stocks, once there is some. They are the heap's.
static STOCKS: AtomicPtr<Round> = AtomicPtr::new(null_mut());
/// Pages of slabs, of magazines, and of allocations larger than the classes. They are the heap's.
static PAGES: AtomicU64 = AtomicU64::new(0);

/// Rust has one global allocator.
#[global_allocator]
static HEAP: Heap = Heap;

struct Heap;

/// Before `cpu` is started.
pub(super) fn add_cpu(cpu: CpuId) {
    LOCAL.prepare(cpu);
}

/// Words of a slab's map: a page has 256 objects of 16 bytes.
const WORDS: usize = 4;
/// Bytes of the largest objects that are cut from slabs.
const LARGEST: usize = 2048;
/// The class of `LARGEST`, and the number of classes.
const CLASSES: usize = match Class::of_size(LARGEST) {
    Some(class) => class.index(),
    None => 0,
};
/// Pages that hold the magazines of a CPU, or the stocks of the depots.
const MAGAZINE_PAGES: u64 = 2;

const GEOMETRIES: [Geometry; CLASSES + 1] = {
    let mut geometries = [geometry(16); CLASSES + 1];
    let mut class = 1;
    while class <= CLASSES {
        if let Some(named) = Class::from_index(class) {
            geometries[class] = geometry(named.bytes());
        }
        class += 1;
    }
    geometries
};

/// Short slabs, which are found when memory is short, of seven objects or more.
const fn geometry(object_bytes: usize) -> Geometry {
    let pages = match object_bytes {
        0..=512 => 1,
        513..=1024 => 2,
        _ => 4,
    };
    Geometry::new(object_bytes, pages * PAGE_BYTES, size_of::<Slab<WORDS>>())
}

/// Objects that move between a CPU and a depot at once; a magazine holds twice as many.
const fn batch(class: Class) -> usize {
    match 3072 / class.bytes() {
        0..2 => 2,
        objects if objects > 24 => 24,
        objects => objects,
    }
}

const _: () = {
    let (mut rounds, mut class) = (0, 1);
    while class <= CLASSES {
        if let Some(named) = Class::from_index(class) {
            rounds += 2 * batch(named);
        }
        class += 1;
    }
    assert!(rounds * size_of::<Round>() <= MAGAZINE_PAGES as usize * PAGE_BYTES);
};

const fn depots() -> [Spin<Depot<WORDS>>; CLASSES + 1] {
    let mut depots = [const { Spin::new(Depot::new(GEOMETRIES[1])) }; CLASSES + 1];
    let mut class = 1;
    while class <= CLASSES {
        depots[class] = Spin::new(Depot::new(GEOMETRIES[class]));
        class += 1;
    }
    depots
}

/// The depot of a class. Its stock gets its storage on first use.
fn depot(class: Class) -> SpinGuard<'static, Depot<WORDS>> {
    let mut depot = DEPOTS[class.index()].lock();
    if !depot.has_stock()
        && let Some(stocks) = stocks()
    {
        let before = classes().take_while(|other| other.index() < class.index());
        let offset = before.map(|other| 2 * batch(other)).sum();
        // SAFETY: **Claim**: the pages are ours for good, long enough, and each class has its part.
        unsafe { depot.lend(stocks.add(offset), 2 * batch(class)) };
    }
    depot
}

/// Storage for the stocks of all classes. Two CPUs may find at once that there is none; one gives
/// its pages back.
fn stocks() -> Option<NonNull<Round>> {
    if let Some(stocks) = NonNull::new(STOCKS.load(Acquire)) {
        return Some(stocks);
    }
    let made = magazines()?;
    match STOCKS.compare_exchange(null_mut(), made.as_ptr(), AcqRel, Acquire) {
        Ok(_) => Some(made),
        Err(before) => {
            give_pages(made.as_ptr().cast(), MAGAZINE_PAGES);
            NonNull::new(before)
        }
    }
}

fn classes() -> impl Iterator<Item = Class> {
    Class::all().take(CLASSES)
}

/// Storage for a magazine of each class.
fn magazines() -> Option<NonNull<Round>> {
    Some(pages(MAGAZINE_PAGES)?.cast())
}

struct Frames;

// SAFETY: **Claim**: an extent is used by nobody but its owner; **Direct** maps it. Extents
// of a power of two pages are aligned to their length, so the description is where
// `description` looks for every object of the slab.
unsafe impl SlabSource<WORDS> for Frames {
    fn slab(&mut self, geometry: &Geometry) -> Option<NonNull<Slab<WORDS>>> {
        let base = pages((geometry.slab_bytes() / PAGE_BYTES) as u64)?;
        let slab = description(base, geometry);
        // SAFETY: `Geometry` reserves the slab's last bytes for it.
        unsafe { slab.write(Slab::new(base, geometry)) };
        Some(slab)
    }

    fn release(&mut self, slab: NonNull<Slab<WORDS>>, geometry: &Geometry) {
        // SAFETY: the slab is ours until now.
        let base = unsafe { slab.as_ref() }.base();
        give_pages(base.as_ptr(), (geometry.slab_bytes() / PAGE_BYTES) as u64);
    }

    fn slab_of(&self, object: Round, geometry: &Geometry) -> NonNull<Slab<WORDS>> {
        description(object, geometry)
    }
}

/// Where the description of the slab lies to which an address belongs.
fn description(address: NonNull<u8>, geometry: &Geometry) -> NonNull<Slab<WORDS>> {
    let bytes = geometry.slab_bytes();
    let offset = bytes - size_of::<Slab<WORDS>>();
    let place = address
        .as_ptr()
        .map_addr(|address| (address & !(bytes - 1)) + offset);
    // SAFETY: the direct map does not begin at zero.
    unsafe { NonNull::new_unchecked(place.cast()) }
}

/// Bytes of RAM that the heap has taken, free objects included.
pub fn heap_bytes() -> u64 {
    PAGES.load(Relaxed) * PAGE_BYTES as u64
}

/// What the objects of one size take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClassStats {
    /// Bytes of an object.
    pub object_bytes: usize,
    /// Objects in a slab.
    pub slab_objects: usize,
    /// Pages of a slab.
    pub slab_pages: usize,
    /// Slabs.
    pub slabs: usize,
    /// Objects that lie free where all CPUs find them. Others are in use, or a CPU has them
    /// at hand.
    pub free: usize,
}

/// All sizes of the heap that are cut from slabs.
pub fn class_stats() -> impl Iterator<Item = ClassStats> {
    classes().map(|class| {
        let depot = depot(class).stats();
        let geometry = &GEOMETRIES[class.index()];
        ClassStats {
            object_bytes: class.bytes(),
            slab_objects: geometry.objects(),
            slab_pages: geometry.slab_bytes() / PAGE_BYTES,
            slabs: depot.slabs,
            free: depot.free,
        }
    })
}

fn pages(count: u64) -> Option<NonNull<u8>> {
    let urgency = match fallible::is_refusable() {
        true => Urgency::Ordinary,
        false => Urgency::Critical,
    };
    let first = ram::alloc_for_heap(count, urgency)?;
    PAGES.fetch_add(count, Relaxed);
    NonNull::new(direct::frame_pointer(first))
}

fn give_pages(start: *mut u8, count: u64) {
    PAGES.fetch_sub(count, Relaxed);
    let Some(first) = direct::frame_of(start) else {
        return;
    };
    match count {
        1 => ram::free_frame(Frame::from_number(first)),
        _ => ram::free_extent(Extent::from_parts(first, count)),
    }
}

fn page_count(layout: Layout) -> u64 {
    layout.size().max(layout.align()).div_ceil(PAGE_BYTES) as u64
}

/// The class of each size up to `LARGEST`, in steps of 16 bytes: a load is shorter than
/// what `Class::of_size` computes.
const BY_STEP: [Class; LARGEST / 16 + 1] = {
    let mut table = [Class::NONE; LARGEST / 16 + 1];
    let mut step = 0;
    while step < table.len() {
        if let Some(class) = Class::of_size(step * 16) {
            table[step] = class;
        }
        step += 1;
    }
    table
};

/// The class for a layout, or `None` if it takes whole pages.
#[inline(always)]
fn class_of(layout: Layout) -> Option<Class> {
    let size = match layout.align() {
        0..=16 => layout.size(),
        // A power of two, whose class is aligned to itself.
        _ => layout.size().max(layout.align()).next_power_of_two(),
    };
    BY_STEP.get(size.wrapping_add(15) / 16).copied()
}

#[cold]
#[inline(never)]
fn alloc_large(layout: Layout) -> *mut u8 {
    let count = page_count(layout);
    if count <= frames::PAGES_MAX {
        return pages(count).map_or(null_mut(), NonNull::as_ptr);
    }
    let Some(object) = vmalloc::alloc(count * PAGE_BYTES as u64) else {
        return null_mut();
    };
    PAGES.fetch_add(count, Relaxed);
    object
}

#[cold]
#[inline(never)]
fn free_large(object: *mut u8, layout: Layout) {
    let count = page_count(layout);
    if !vmalloc::holds(object) {
        return give_pages(object, count);
    }
    PAGES.fetch_sub(count, Relaxed);
    vmalloc::free(object);
}

#[cold]
#[inline(never)]
fn alloc_refilled(heap: &mut LocalHeap, class: Class) -> *mut u8 {
    if !is_equipped(heap, class) {
        return null_mut();
    }
    heap.refill(class, batch(class), &mut depot(class), &mut Frames);
    heap.alloc(class).map_or(null_mut(), NonNull::as_ptr)
}

/// Whether the CPU's magazines have storage, which they get on first use.
fn is_equipped(heap: &mut LocalHeap, class: Class) -> bool {
    if heap.magazine(class).capacity() > 0 {
        return true;
    }
    let Some(mut storage) = magazines() else {
        return false;
    };
    for class in classes() {
        // SAFETY: **Claim**: the pages are the CPU's for good, and long enough.
        unsafe {
            heap.magazine(class).lend(storage, 2 * batch(class));
            storage = storage.add(2 * batch(class));
        }
    }
    true
}

#[cold]
#[inline(never)]
fn free_drained(heap: &mut LocalHeap, class: Class, object: Round) {
    let is_equipped = is_equipped(heap, class);
    let mut depot = depot(class);
    let result = if is_equipped {
        heap.drain(class, batch(class), &mut depot, &mut Frames)
    } else {
        // A CPU that found no memory for magazines may still free what others allocated.
        depot.put(object, &mut Frames)
    };
    if let Err(bad) = result {
        report(bad, class);
    }
    if is_equipped {
        heap.magazine(class).push(object);
    }
}

/// A kernel that frees an object twice must not go on.
fn report(bad: BadFree, class: Class) -> ! {
    panic!("heap: {bad:?} of {} bytes", class.bytes())
}

// SAFETY: objects and extents belong to one allocation at a time (**Claim**, and the slab
// crate's **Free**); classes and page counts fit the layout and are found again from it.
unsafe impl GlobalAlloc for Heap {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let Some(class) = class_of(layout) else {
            return alloc_large(layout);
        };
        LOCAL.with(|heap| match heap.alloc(class) {
            Some(object) => object.as_ptr(),
            None => alloc_refilled(heap, class),
        })
    }

    #[inline]
    unsafe fn dealloc(&self, object: *mut u8, layout: Layout) {
        let Some(class) = class_of(layout) else {
            return free_large(object, layout);
        };
        // SAFETY: `alloc` gave it, so it is not null.
        let object = unsafe { NonNull::new_unchecked(object) };
        LOCAL.with(|heap| {
            // SAFETY: the caller returns what `alloc` gave for this layout.
            if !unsafe { heap.free(class, object) } {
                free_drained(heap, class, object);
            }
        });
    }
}
