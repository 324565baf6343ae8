//! The kernel's heap: Rust's `alloc` over slabs and extents.

use core::alloc::{GlobalAlloc, Layout};
use core::ptr::{NonNull, null_mut};
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

use base::PAGE_BYTES;
use frames::{Extent, Frame, Reach};
use slab::{Class, Depot, LocalHeap, PageSource};

use super::own::{Own, own};
use super::{direct, ram};
use crate::sync::Spin;

static LOCAL: Own<LocalHeap> = own!(LocalHeap::new());
static DEPOT: Spin<Depot> = Spin::new(Depot::new());
/// Pages of allocations that are larger than the slabs' classes.
static LARGE_PAGES: AtomicU64 = AtomicU64::new(0);

#[global_allocator]
static HEAP: Heap = Heap;

struct Heap;

struct Frames;

// SAFETY: **Claim**: an extent is used by nobody but its owner; **Direct** maps it.
unsafe impl PageSource for Frames {
    fn pages(&mut self, count: usize) -> Option<NonNull<u8>> {
        pages(count as u64)
    }
}

/// Bytes of RAM that the heap has taken, free objects included.
pub fn heap_bytes() -> u64 {
    (DEPOT.lock().pages() as u64 + LARGE_PAGES.load(Relaxed)) * PAGE_BYTES as u64
}

fn pages(count: u64) -> Option<NonNull<u8>> {
    let first = match count {
        1 => ram::alloc_frame()?.into_number(),
        _ => ram::alloc_extent(count, Reach::Any)?.into_parts().0,
    };
    NonNull::new(direct::frame_pointer(first))
}

fn page_count(layout: Layout) -> u64 {
    layout.size().max(layout.align()).div_ceil(PAGE_BYTES) as u64
}

#[cold]
fn alloc_large(layout: Layout) -> *mut u8 {
    let count = page_count(layout);
    let Some(start) = pages(count) else {
        return null_mut();
    };
    LARGE_PAGES.fetch_add(count, Relaxed);
    start.as_ptr()
}

#[cold]
fn free_large(start: *mut u8, layout: Layout) {
    let count = page_count(layout);
    LARGE_PAGES.fetch_sub(count, Relaxed);
    let Some(first) = direct::frame_of(start) else {
        return;
    };
    match count {
        1 => ram::free_frame(Frame::from_number(first)),
        _ => ram::free_extent(Extent::from_parts(first, count)),
    }
}

#[cold]
#[inline(never)]
fn alloc_refilled(heap: &mut LocalHeap, class: Class) -> *mut u8 {
    let filled = heap.refill(class, &mut DEPOT.lock(), &mut Frames);
    let object = filled.then(|| heap.alloc(class)).flatten();
    object.map_or(null_mut(), NonNull::as_ptr)
}

// SAFETY: slabs and extents belong to one allocation at a time (**Claim**, and the slab
// crate's **Free**); classes and page counts fit the layout and are found again from it.
unsafe impl GlobalAlloc for Heap {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let Some(class) = Class::of(layout) else {
            return alloc_large(layout);
        };
        LOCAL.with(|heap| match heap.alloc(class) {
            Some(object) => object.as_ptr(),
            None => alloc_refilled(heap, class),
        })
    }

    #[inline]
    unsafe fn dealloc(&self, object: *mut u8, layout: Layout) {
        let Some(class) = Class::of(layout) else {
            return free_large(object, layout);
        };
        // SAFETY: `alloc` gave it, so it is not null.
        let object = unsafe { NonNull::new_unchecked(object) };
        LOCAL.with(|heap| {
            // SAFETY: the caller returns what `alloc` gave for this layout.
            if unsafe { heap.free(class, object) } {
                heap.drain(class, &mut DEPOT.lock());
            }
        });
    }
}
