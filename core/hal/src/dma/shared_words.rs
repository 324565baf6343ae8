//! Words of one buffer, of which several parts of a driver have some each, and the device all.

use alloc::sync::Arc;
use core::sync::atomic::{AtomicBool, Ordering};

use super::caching::WriteBack;
use super::owner::Shared;
use super::{DmaBuf, HasDeviceAddr, Span};

/// Shared memory in which only whole words are read and written; clones are the same memory.
#[derive(Clone, Debug)]
pub struct SharedWords(Arc<Words>);

#[derive(Debug)]
struct Words {
    buffer: DmaBuf<WriteBack, Shared>,
    is_forgotten: AtomicBool,
}

// SAFETY: OWNED: the memory is this buffer's alone, and by a shared reference only atomic words of it
// are accessed.
unsafe impl Sync for Words {}

impl SharedWords {
    /// Of all words of a buffer.
    pub fn new(buffer: DmaBuf<WriteBack, Shared>) -> Self {
        Self(Arc::new(Words {
            buffer,
            is_forgotten: AtomicBool::new(false),
        }))
    }

    /// Reads the little-endian word at `offset`, unordered.
    #[inline]
    pub fn read_u32(&self, offset: usize) -> u32 {
        self.0.buffer.read_u32(offset)
    }

    /// Writes the little-endian word at `offset` after all earlier writes.
    #[inline]
    pub fn release_u32(&self, offset: usize, value: u32) {
        self.0.buffer.release_u32(offset, value);
    }

    /// What the device must be told to reach `len` bytes at `offset`.
    pub fn dev_addr(&self, offset: usize, len: usize) -> Option<Span> {
        self.0.buffer.dev_addr(offset, len)
    }

    /// The device knows the address, or has been reset and knows it no more: then the memory is freed with
    /// the last clone.
    pub fn set_forgotten(&self, is_forgotten: bool) {
        self.0.is_forgotten.store(is_forgotten, Ordering::Release);
    }
}

impl Drop for Words {
    fn drop(&mut self) {
        if self.is_forgotten.load(Ordering::Acquire) {
            self.buffer.retire();
        }
    }
}
