//! Packet memory that the kernel shares: chunks that are the blocks of a pool.
//!
//! A block's address for devices ([`Mbuf::device_addr`]) is where it lies in the UMEM, which is what rings
//! speak of.

use std::io;
use std::ptr::NonNull;

use base::DeviceAddr;
use mbuf::{BLOCK_BYTES, FreeList, Mbuf, Pool};

use crate::mapping::Mapping;

/// Bytes of a chunk, and of a block.
pub const CHUNK_BYTES: usize = BLOCK_BYTES;

/// A UMEM. Dropped before its blocks are at home, it stays mapped (Home).
pub struct Umem {
    /// `None` only while it is dropped.
    memory: Option<Mapping>,
    list: NonNull<FreeList>,
    chunks: usize,
}

// SAFETY: `FreeList` is `Send` and `Sync`, and the mapping is only reached through its blocks.
unsafe impl Send for Umem {}

impl Umem {
    /// So many chunks, of which `reserve` are for what passes through (see [`FreeList`]).
    pub fn new(chunks: usize, reserve: usize) -> io::Result<Self> {
        let bytes = chunks.max(2) * CHUNK_BYTES;
        let memory = Mapping::anonymous(bytes)?;
        let list = Box::leak(Box::new(FreeList::new()));
        list.set_reserve(reserve);
        let list = NonNull::from(list);
        // SAFETY: fresh zeroed pages that are nobody else's (Mapped), and list and pages stay while a
        // block is not at home (Home); to the kernel they are one piece.
        let chunks = unsafe {
            list.as_ref()
                .add_region(memory.start(), bytes, DeviceAddr(0))
        };
        Ok(Self {
            memory: Some(memory),
            list,
            chunks,
        })
    }

    #[inline]
    fn list(&self) -> &FreeList {
        // SAFETY: made in `new`, freed only in `drop`.
        unsafe { self.list.as_ref() }
    }

    /// Where the program has it.
    pub fn address(&self) -> usize {
        let start = |memory: &Mapping| memory.start().addr().get();
        self.memory.as_ref().map_or(0, start)
    }

    /// How many chunks there are.
    pub fn chunks(&self) -> usize {
        self.chunks
    }

    /// Its bytes.
    pub fn bytes(&self) -> usize {
        self.chunks * CHUNK_BYTES
    }

    /// Chunks that neither the program nor the kernel has.
    pub fn free(&self) -> usize {
        self.list().free()
    }

    /// Where a buffer's bytes lie in it; `None` for a buffer of another pool.
    #[inline]
    pub fn offset_of(&self, part: &Mbuf) -> Option<u64> {
        let offset = part.bytes().as_ptr().addr().wrapping_sub(self.address());
        (offset < self.bytes()).then_some(offset as u64)
    }

    /// Where `bytes` at an offset lie. Panics beyond the end.
    pub(crate) fn at(&self, offset: u64, bytes: usize) -> NonNull<u8> {
        let offset = offset as usize;
        assert!(offset < self.bytes() && bytes <= self.bytes() - offset);
        let memory = self.memory.as_ref().expect("it is not dropped");
        // SAFETY: it lies within the mapping (Mapped).
        unsafe { memory.start().add(offset) }
    }

    /// See [`FreeList::alloc_to_queue`].
    #[inline]
    pub fn alloc_to_queue(&self) -> Option<Mbuf> {
        self.list().alloc_to_queue()
    }

    /// See [`FreeList::is_scarce`].
    #[inline]
    pub fn is_scarce(&self) -> bool {
        self.list().is_scarce()
    }
}

impl Pool for Umem {
    #[inline]
    fn alloc(&self) -> Option<Mbuf> {
        self.list().alloc()
    }
}

impl Drop for Umem {
    fn drop(&mut self) {
        if self.list().free() != self.chunks {
            std::mem::forget(self.memory.take());
            return;
        }
        // SAFETY: all blocks are at home, so no `Mbuf` refers to the list, which `new` has made a box.
        drop(unsafe { Box::from_raw(self.list.as_ptr()) });
    }
}
