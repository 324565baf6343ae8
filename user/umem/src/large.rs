//! Allocations with a mapping of their own: a page of description, then the memory.

use core::ptr::NonNull;

use crate::map::{self, LARGE};
use crate::sys::{self, PAGE};

/// Lies in the page before the memory.
struct Header {
    start: NonNull<u8>,
    bytes: usize,
}

/// Memory for `bytes` bytes, a multiple of `align` (at least a page), all zeros.
pub fn alloc(bytes: usize, align: usize) -> Option<NonNull<u8>> {
    let align = align.max(PAGE);
    let whole = bytes.checked_next_multiple_of(PAGE)?.checked_add(PAGE)?;
    if !map::prepare() || whole > isize::MAX as usize {
        return None;
    }
    let start = sys::map_aligned(whole, align, PAGE)?;
    Some(describe(start, whole))
}

fn describe(start: NonNull<u8>, bytes: usize) -> NonNull<u8> {
    // SAFETY: the mapping's first page is ours.
    unsafe { start.cast().write(Header { start, bytes }) };
    let memory = start.map_addr(|address| address.saturating_add(PAGE));
    map::set(memory.as_ptr(), 1, LARGE);
    memory
}

fn header(memory: NonNull<u8>) -> Header {
    let header = memory.as_ptr().wrapping_sub(PAGE);
    // SAFETY: the map says that the address is a large allocation's.
    unsafe { header.cast::<Header>().read() }
}

/// Bytes that an allocation can hold.
pub fn usable(memory: NonNull<u8>) -> usize {
    header(memory).bytes - PAGE
}

/// Gives an allocation back to the system.
pub fn free(memory: NonNull<u8>) {
    map::set(memory.as_ptr(), 1, map::NOTHING);
    let Header { start, bytes } = header(memory);
    sys::unmap(start, bytes);
}

/// Changes the length of an allocation, moving its pages if it must.
pub fn resize(memory: NonNull<u8>, bytes: usize) -> Option<NonNull<u8>> {
    let whole = bytes.checked_next_multiple_of(PAGE)?.checked_add(PAGE)?;
    let old = header(memory);
    if old.bytes == whole {
        return Some(memory);
    }
    map::set(memory.as_ptr(), 1, map::NOTHING);
    // SAFETY: the mapping is ours; who holds its address learns the new one.
    let moved = unsafe {
        libc::mremap(
            old.start.as_ptr().cast(),
            old.bytes,
            whole,
            libc::MREMAP_MAYMOVE,
        )
    };
    let Some(moved) = NonNull::new(moved).filter(|_| moved != libc::MAP_FAILED) else {
        map::set(memory.as_ptr(), 1, LARGE);
        return None;
    };
    Some(describe(moved.cast(), whole))
}
