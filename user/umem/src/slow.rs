//! Everything that is not a pop or a push.

use core::ptr::{self, NonNull};

use slab::{BadFree, LARGEST};

use crate::map::{self, LARGE, SPAN, UNIT};
use crate::sizes::{LARGEST_ADDED, SizeClass};
use crate::spans::{self, LONGEST};
use crate::{abi, debug, decay, large, mark, options, report, sys, thread};

/// The longest allocation that takes a span; longer ones have a mapping of their own.
pub const LONGEST_SPAN: usize = LONGEST * UNIT;
/// Smaller sizes than this have all their powers of two aligned in slabs.
const SLAB_ALIGN: usize = UNIT;

/// Memory of at least `size` bytes for which the thread's magazine had none.
#[cold]
#[inline(never)]
pub fn malloc(size: usize) -> *mut u8 {
    options::read();
    match debug::is_on() {
        true => debug::malloc(16, size),
        false => plain_malloc(size),
    }
}

fn plain_malloc(size: usize) -> *mut u8 {
    found(small(size).or_else(|| big(size).map(|(memory, _)| memory)))
}

fn small(size: usize) -> Option<NonNull<u8>> {
    let class = SizeClass::of_size(size)?;
    decay::tick();
    // SAFETY: **Own**.
    let thread = unsafe { &mut *thread::current() };
    let magazine = thread.heap.magazine_at(class.index());
    let object = magazine.pop().or_else(|| thread.refill(class))?;
    if !debug::is_on() {
        // SAFETY: a round of a size class, ours alone.
        unsafe { mark::clear(object) };
    }
    Some(object)
}

/// Memory for more than [`LARGEST`] bytes, and whether it is all zeros.
fn big(size: usize) -> Option<(NonNull<u8>, bool)> {
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

fn found(memory: Option<NonNull<u8>>) -> *mut u8 {
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

/// As [`malloc`], all zeros, for sizes above [`LARGEST`].
#[cold]
pub fn zeroed(size: usize) -> *mut u8 {
    options::read();
    if debug::is_on() {
        let memory = debug::malloc(16, size);
        if !memory.is_null() {
            // SAFETY: the memory is ours and that long.
            unsafe { memory.write_bytes(0, size) };
        }
        return memory;
    }
    let small = small(size).map(|memory| (memory, false));
    let Some((memory, is_zeroed)) = small.or_else(|| big(size)) else {
        return found(None);
    };
    if !is_zeroed {
        // SAFETY: the memory is ours and that long.
        unsafe { memory.write_bytes(0, size) };
    }
    memory.as_ptr()
}

/// Memory whose address is a multiple of `align`, a power of two.
pub fn aligned(align: usize, size: usize) -> *mut u8 {
    options::read();
    match debug::is_on() {
        true => debug::malloc(align, size),
        false => plain(align, size),
    }
}

/// As [`aligned`], without anything around it.
pub fn plain(align: usize, size: usize) -> *mut u8 {
    let allocate = |size| match abi::pop(size) {
        Some(object) => object.as_ptr(),
        None => plain_malloc(size),
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

/// Frees what has no room in the thread's magazine.
#[cold]
#[inline(never)]
pub fn free(memory: *mut u8) {
    let Some(memory) = NonNull::new(memory) else {
        return;
    };
    match debug::is_on() {
        true => debug::free(memory),
        false => {
            mark_free(memory);
            plain_free(memory);
        }
    }
}

/// Marks an object of a size class as free; ends the program if it is already.
fn mark_free(memory: NonNull<u8>) {
    if SizeClass::from_index(map::look_up(memory.as_ptr()) as usize).is_none() {
        return;
    }
    // SAFETY: the map says that it is in a slab; nobody uses it any more.
    if !unsafe { mark::set(memory) } {
        refuse_free(memory);
    }
}

/// Ends the program: `object` was freed, and is free already.
#[cold]
pub fn refuse_free(object: NonNull<u8>) -> ! {
    match SizeClass::from_index(map::look_up(object.as_ptr()) as usize) {
        Some(class) => report::bad_free(BadFree::Twice(object), class),
        None => report::unknown_address(object.addr().get()),
    }
}

/// As [`free`], without anything around it.
pub fn plain_free(memory: NonNull<u8>) {
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
            None => report::unknown_address(memory.addr().get()),
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
    match debug::is_on() {
        true => debug::usable(memory),
        false => plain_usable(memory),
    }
}

/// As [`usable`], with what lies around it.
pub fn plain_usable(memory: NonNull<u8>) -> usize {
    match map::look_up(memory.as_ptr()) {
        SPAN => spans::span_units(memory) * UNIT,
        LARGE => large::usable(memory),
        index => match SizeClass::from_index(index as usize) {
            Some(class) => class.bytes(),
            None => report::unknown_address(memory.addr().get()),
        },
    }
}
