//! Free blocks that a CPU keeps for itself, so that a buffer that is taken and given back costs
//! no lock and no cache line that others write (Bonwick's magazines, as in `core/slab`).
//!
//! A magazine that runs empty takes half a load from its list, one that is full gives half of
//! it back: whatever the order of requests, the list's lock is taken once for
//! `MAGAZINE_BLOCKS / 2` of them at most.
//!
//! Blocks in a magazine are free, but not for other CPUs. So they do not count when a list is
//! asked whether it is scarce, and a reserve must allow for them.

use core::cell::UnsafeCell;
use core::ptr::NonNull;
use core::sync::atomic::{AtomicUsize, Ordering};

use crate::pool::Block;

/// Blocks that a magazine holds at most.
pub const MAGAZINE_BLOCKS: usize = 32;
/// Blocks that move between a magazine and its list at once.
pub(crate) const LOAD_BLOCKS: usize = MAGAZINE_BLOCKS / 2;

/// One CPU's free blocks, on a cache line of its own.
#[repr(align(64))]
pub struct Magazine {
    first: UnsafeCell<Option<NonNull<Block>>>,
    /// Written by the owner alone, read by whoever counts.
    count: AtomicUsize,
}

// SAFETY: `first` is reached by the owner alone (Own).
unsafe impl Sync for Magazine {}

impl Magazine {
    /// An empty one.
    pub const fn new() -> Self {
        Self {
            first: UnsafeCell::new(None),
            count: AtomicUsize::new(0),
        }
    }

    /// How many blocks there are.
    #[inline]
    pub(crate) fn count(&self) -> usize {
        self.count.load(Ordering::Relaxed)
    }

    #[inline]
    pub(crate) fn is_full(&self) -> bool {
        self.count() >= MAGAZINE_BLOCKS
    }

    /// # Safety
    /// The caller is the owner (Own); `block` is live and has no `Mbuf`.
    #[inline]
    pub(crate) unsafe fn push(&self, block: NonNull<Block>) {
        // SAFETY: by Own nobody else has a reference to `first`, and a free block's `next`
        // belongs to whoever has it.
        unsafe {
            *block.as_ref().next.get() = *self.first.get();
            *self.first.get() = Some(block);
        }
        self.count.store(self.count() + 1, Ordering::Relaxed);
    }

    /// # Safety
    /// The caller is the owner (Own).
    #[inline]
    pub(crate) unsafe fn pop(&self) -> Option<NonNull<Block>> {
        // SAFETY: as in `push`.
        let block = unsafe { (*self.first.get())? };
        // SAFETY: as in `push`.
        unsafe { *self.first.get() = *block.as_ref().next.get() };
        self.count.store(self.count() - 1, Ordering::Relaxed);
        Some(block)
    }
}

impl Default for Magazine {
    fn default() -> Self {
        Self::new()
    }
}
