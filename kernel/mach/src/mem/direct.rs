//! Pointers into the direct map.

use arch::layout::DIRECT_MAP;
use base::{PAGE_SHIFT, PhysAddr};
use frames::FrameNo;

/// Where the kernel sees physical address `at`. By **Direct** valid for frames of RAM.
#[inline(always)]
pub(super) fn pointer(at: PhysAddr) -> *mut u8 {
    core::ptr::with_exposed_provenance_mut((DIRECT_MAP + at.0) as usize)
}

/// Where the kernel sees the first byte of `frame`.
#[inline(always)]
pub(super) fn frame_pointer(frame: FrameNo) -> *mut u8 {
    pointer(PhysAddr(frame << PAGE_SHIFT))
}

/// The frame behind a pointer into the direct map.
#[inline(always)]
pub(super) fn frame_of(pointer: *mut u8) -> Option<FrameNo> {
    let offset = (pointer.expose_provenance() as u64).checked_sub(DIRECT_MAP)?;
    Some(offset >> PAGE_SHIFT)
}

/// The physical address of memory of the heap.
pub(crate) fn physical_of<T>(memory: &[T]) -> u64 {
    memory.as_ptr().expose_provenance() as u64 - DIRECT_MAP
}
