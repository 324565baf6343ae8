//! A pool over the host's heap, for tests, simulations and tools.

use alloc::alloc::{Layout, alloc_zeroed, dealloc};
use alloc::boxed::Box;
use core::ptr::NonNull;

use base::DeviceAddr;

use crate::mbuf::Mbuf;
use crate::pool::{BLOCK_BYTES, FreeList, Pool};

/// A bounded pool of heap memory. Dropped before its buffers are home, it leaks.
pub struct HeapPool {
    list: NonNull<FreeList>,
    region: NonNull<u8>,
    layout: Layout,
}

// SAFETY: `region` is only used to free it in `drop`; `FreeList` is `Send` and `Sync`.
unsafe impl Send for HeapPool {}
// SAFETY: as above.
unsafe impl Sync for HeapPool {}

impl HeapPool {
    /// A pool of `blocks` buffers, at least one. Panics if the host has no memory.
    pub fn new(blocks: usize) -> Self {
        let bytes = blocks.max(1) * BLOCK_BYTES;
        let layout = Layout::from_size_align(bytes, 4096).expect("pool size fits");
        // SAFETY: `layout` is not empty.
        let region = NonNull::new(unsafe { alloc_zeroed(layout) }).expect("host memory");
        let list = NonNull::from(Box::leak(Box::new(FreeList::new())));
        // SAFETY: fresh zeroed memory, aligned to a page, freed only in `drop` when every
        // block is home, like the list; on the host a device address is a plain address.
        unsafe {
            let device = DeviceAddr(region.addr().get() as u64);
            list.as_ref().add_region(region, bytes, device);
        }
        Self {
            list,
            region,
            layout,
        }
    }

    fn list(&self) -> &FreeList {
        // SAFETY: made in `new`, freed only in `drop`.
        unsafe { self.list.as_ref() }
    }

    /// The same, of which `reserve` are for what passes through.
    pub fn with_reserve(blocks: usize, reserve: usize) -> Self {
        let pool = Self::new(blocks);
        pool.list().set_reserve(reserve);
        pool
    }

    /// See [`FreeList::alloc_to_queue`].
    pub fn alloc_to_queue(&self) -> Option<Mbuf> {
        self.list().alloc_to_queue()
    }

    /// See [`FreeList::is_scarce`].
    pub fn is_scarce(&self) -> bool {
        self.list().is_scarce()
    }

    /// Buffers not in use.
    pub fn free(&self) -> usize {
        self.list().free()
    }

    /// Buffers in use.
    pub fn used(&self) -> usize {
        self.list().total() - self.list().free()
    }
}

impl Pool for HeapPool {
    fn alloc(&self) -> Option<Mbuf> {
        self.list().alloc()
    }
}

impl Drop for HeapPool {
    fn drop(&mut self) {
        if self.used() > 0 {
            return;
        }
        // SAFETY: every block is home, so no `Mbuf` refers to the region or the list, and
        // both were made in `new` by the allocator that takes them back here.
        unsafe {
            dealloc(self.region.as_ptr(), self.layout);
            drop(Box::from_raw(self.list.as_ptr()));
        }
    }
}
