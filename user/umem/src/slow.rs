//! Everything that is not a pop or a push.

use core::ptr::NonNull;

use slab::BadFree;

use crate::sizes::SizeClass;
use crate::{debug, map, mark, options, plain, report};

/// Memory of at least `size` bytes for which the thread's magazine had none.
#[cold]
#[inline(never)]
pub fn malloc(size: usize) -> *mut u8 {
    options::read();
    match debug::is_on() {
        true => debug::malloc(16, size),
        false => plain::malloc(size),
    }
}

/// As [`malloc`], all zeros, for sizes above the largest class.
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
    let small = plain::small(size).map(|memory| (memory, false));
    let Some((memory, is_zeroed)) = small.or_else(|| plain::big(size)) else {
        return plain::found(None);
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
        false => plain::aligned(align, size),
    }
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
            plain::free(memory);
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
        None => debug::unknown_address(object.addr().get()),
    }
}

/// Bytes that may be used at `memory`.
pub fn usable(memory: NonNull<u8>) -> usize {
    match debug::is_on() {
        true => debug::usable(memory),
        false => plain::usable(memory),
    }
}
