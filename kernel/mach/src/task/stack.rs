//! Kernel stacks.

use alloc::alloc::{Layout, alloc_zeroed, dealloc};
use core::ptr::NonNull;

/// Bytes of a kernel stack.
pub const STACK_BYTES: usize = 16 << 10;

const LAYOUT: Layout = match Layout::from_size_align(STACK_BYTES, base::PAGE_BYTES) {
    Ok(layout) => layout,
    Err(_) => panic!("the alignment is a power of two"),
};

/// A stack that nobody runs on, or the one thread that owns it.
pub(super) struct KernelStack {
    bottom: NonNull<u8>,
}

// SAFETY: the memory is owned.
unsafe impl Send for KernelStack {}

impl KernelStack {
    /// A stack, or `None` without memory.
    pub(super) fn new() -> Option<Self> {
        // SAFETY: the layout is not empty.
        NonNull::new(unsafe { alloc_zeroed(LAYOUT) }).map(|bottom| Self { bottom })
    }

    /// The address above its last byte.
    pub(super) fn top(&self) -> u64 {
        self.bottom.as_ptr() as u64 + STACK_BYTES as u64
    }
}

impl Drop for KernelStack {
    fn drop(&mut self) {
        // SAFETY: the memory came from the allocator with this layout, and a stack is
        // dropped only when no thread runs on it (**Parked** of `Context`).
        unsafe { dealloc(self.bottom.as_ptr(), LAYOUT) }
    }
}
