//! Memory without anything around it: objects of classes, spans, mappings.

use core::ptr::{self, NonNull};

use slab::{Class, LARGEST};

use crate::debug;
use crate::map::{self, LARGE, SPAN, UNIT};
use crate::sizes::{LARGEST_ADDED, SizeClass};
use crate::spans::{self, LONGEST};
use crate::{decay, large, mark, settings, sys, thread};

/// The longest allocation that takes a span; longer ones have a mapping of their own.
pub const LONGEST_SPAN: usize = LONGEST * UNIT;
/// Smaller sizes than this have all their powers of two aligned in slabs.
const SLAB_ALIGN: usize = UNIT;

/// An object from the thread's magazines.
#[inline(always)]
pub fn pop(size: usize) -> Option<NonNull<u8>> {
    let class = Class::of_size(size)?;
    // SAFETY: **Own**: the reference ends with the pop.
    let heap = unsafe { &mut (*thread::current()).heap };
    let object = heap.alloc(class)?;
    // SAFETY: a round of a size class, ours alone.
    unsafe { mark::clear(object) };
    Some(object)
}

/// Memory of at least `size` bytes for which the magazine had none.
pub fn malloc(size: usize) -> *mut u8 {
    found(small(size).or_else(|| big(size).map(|(memory, _)| memory)))
}

/// An object of a class.
pub fn small(size: usize) -> Option<NonNull<u8>> {
    let class = SizeClass::of_size(size)?;
    decay::tick();
    // SAFETY: **Own**.
    let thread = unsafe { &mut *thread::current() };
    let magazine = thread.heap.magazine_at(class.index());
    let object = magazine.pop().or_else(|| thread.refill(class))?;
    if !settings::debug().is_on() {
        // SAFETY: a round of a size class, ours alone.
        unsafe { mark::clear(object) };
    }
    Some(object)
}

/// Memory for more than [`LARGEST`] bytes, and whether it is all zeros.
pub fn big(size: usize) -> Option<(NonNull<u8>, bool)> {
    if size <= LARGEST {
        return None;
    }
    if size > LONGEST_SPAN {
        return Some((large::alloc(size, 1)?, true));
    }
    decay::tick();
    let (span, is_zeroed) = spans::lock().alloc(size.div_ceil(UNIT))?;
    map::set(span.as_ptr(), 1, SPAN);
    Some((span, is_zeroed))
}

/// What a program gets: null, and the reason in `errno`, if there is none.
pub fn found(memory: Option<NonNull<u8>>) -> *mut u8 {
    match memory {
        Some(memory) => memory.as_ptr(),
        None => {
            sys::set_errno(libc::ENOMEM);
            ptr::null_mut()
        }
    }
}

/// No memory, and the reason in `errno`.
pub fn refuse() -> *mut u8 {
    found(None)
}

/// Memory whose address is a multiple of `align`, a power of two.
pub fn aligned(align: usize, size: usize) -> *mut u8 {
    let allocate = |size| match pop(size) {
        Some(object) => object.as_ptr(),
        None => malloc(size),
    };
    if align <= 16 {
        return allocate(size);
    }
    if align <= SLAB_ALIGN && size <= LARGEST_ADDED {
        // A class whose size is a multiple of the alignment: a power of two in the end.
        let mut wanted = size.max(1).next_multiple_of(align);
        while let Some(class) = SizeClass::of_size(wanted) {
            if class.bytes().is_multiple_of(align) {
                return allocate(class.limit());
            }
            wanted = class.limit() + 1;
        }
    }
    if align <= UNIT && size > LARGEST && size <= LONGEST_SPAN {
        return found(big(size).map(|(memory, _)| memory));
    }
    found(large::alloc(size.max(1), align))
}

/// Frees what was allocated here.
pub fn free(memory: NonNull<u8>) {
    match map::look_up(memory.as_ptr()) {
        SPAN => {
            map::set(memory.as_ptr(), 1, map::NOTHING);
            spans::lock().free(memory);
            decay::tick();
        }
        LARGE => large::free(memory),
        index => match SizeClass::from_index(index as usize) {
            Some(class) => {
                // SAFETY: **Own**.
                let thread = unsafe { &mut *thread::current() };
                thread.overflow(class, memory);
                decay::tick();
            }
            None => debug::unknown_address(memory.addr().get()),
        },
    }
}

/// Whether an address lies in a slab, or starts a span or mapping, of ours.
pub fn is_known(memory: NonNull<u8>) -> bool {
    map::look_up(memory.as_ptr()) != map::NOTHING
}

/// How the names of the cache begin from which memory came.
pub fn cache_prefix(memory: NonNull<u8>) -> &'static str {
    match map::look_up(memory.as_ptr()) {
        SPAN => "umem_span_",
        LARGE => "umem_oversize_",
        _ => "umem_alloc_",
    }
}

/// Bytes that may be used at `memory`.
pub fn usable(memory: NonNull<u8>) -> usize {
    match map::look_up(memory.as_ptr()) {
        SPAN => spans::span_units(memory) * UNIT,
        LARGE => large::usable(memory),
        index => match SizeClass::from_index(index as usize) {
            Some(class) => class.bytes(),
            None => debug::unknown_address(memory.addr().get()),
        },
    }
}
