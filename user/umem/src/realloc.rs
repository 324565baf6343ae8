//! Changing the size of an allocation, in place where that wastes little.

use core::ptr::{self, NonNull};

use slab::LARGEST;

use crate::map::{self, LARGE, SPAN, UNIT};
use crate::plain::LONGEST_SPAN;
use crate::{abi, debug, large, slow, spans, sys};

/// Memory of `size` bytes that begins as `memory` did; null leaves `memory` as it is.
pub fn resize(memory: NonNull<u8>, size: usize) -> *mut u8 {
    let usable = slow::usable(memory);
    if size <= usable && size >= usable / 2 && (size == usable || !debug::is_on()) {
        return memory.as_ptr();
    }
    match map::look_up(memory.as_ptr()) {
        // Headers and red zones do not move.
        _ if debug::is_on() => {}
        LARGE if size > LONGEST_SPAN => match large::resize(memory, size) {
            Some(moved) => return moved.as_ptr(),
            None => {
                sys::set_errno(libc::ENOMEM);
                return ptr::null_mut();
            }
        },
        SPAN if size > LARGEST && size <= LONGEST_SPAN && resize_span(memory, usable, size) => {
            return memory.as_ptr();
        }
        _ => {}
    }
    let Some(moved) = NonNull::new(abi::allocate(size)) else {
        return ptr::null_mut();
    };
    // SAFETY: both are allocated and at least that long, and are distinct.
    unsafe { ptr::copy_nonoverlapping(memory.as_ptr(), moved.as_ptr(), usable.min(size)) };
    // SAFETY: the caller gives `memory` up for what we return.
    unsafe { abi::release(memory.as_ptr()) };
    moved.as_ptr()
}

fn resize_span(memory: NonNull<u8>, usable: usize, size: usize) -> bool {
    let (before, after) = (usable / UNIT, size.div_ceil(UNIT));
    let mut spans = spans::lock();
    if after > before {
        return spans.extend(memory, after - before);
    }
    if after < before {
        spans.shrink(memory, before - after);
    }
    true
}
