//! The memory that a ring shares with its program.
//!
//! Programs may write to it at any time, so nothing that is read from it is trusted.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use base::{PAGE_BYTES, SharedMemory};
use mach::mem::Page;
use mach::mem::fallible::{self, TryGrow};
use mm::{FaultError, MemoryObject, Sharing};
use sync::{Error, Result};

/// All rings together have at most this share of memory.
const MEMORY_SHARE: usize = 16;

/// The limit is on what all rings hold together: memory is the machine's.
static PAGES_HELD: AtomicUsize = AtomicUsize::new(0);

/// Pages of a ring.
pub struct Pages {
    pages: Vec<Page>,
    counted: usize,
}

impl Pages {
    /// `bytes` bytes of zeros.
    ///
    /// Errors: `OutOfMemory`.
    pub fn new(bytes: usize) -> Result<Arc<Self>> {
        let count = bytes.div_ceil(PAGE_BYTES);
        let limit = mach::mem::stats().total as usize / MEMORY_SHARE;
        let more = |held: usize| held.checked_add(count).filter(|sum| *sum <= limit);
        PAGES_HELD
            .fetch_update(Relaxed, Relaxed, more)
            .map_err(|_| Error::OutOfMemory)?;
        let mut new = Self {
            pages: Vec::new(),
            counted: count,
        };
        new.pages.make_room(count)?;
        for _ in 0..count {
            new.pages.push(Page::zeroed().ok_or(Error::OutOfMemory)?);
        }
        Ok(fallible::arc(new)?)
    }

    fn place(&self, at: usize) -> Option<(&Page, usize)> {
        Some((self.pages.get(at / PAGE_BYTES)?, at % PAGE_BYTES))
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        PAGES_HELD.fetch_sub(self.counted, Relaxed);
    }
}

/// Words and entries are aligned, so none lies across two pages.
impl SharedMemory for Pages {
    fn load(&self, at: usize) -> u32 {
        self.place(at)
            .map_or(0, |(page, offset)| page.load_u32(offset))
    }

    fn store(&self, at: usize, value: u32) {
        if let Some((page, offset)) = self.place(at) {
            page.store_u32(offset, value);
        }
    }

    fn read(&self, at: usize, to: &mut [u8]) {
        if let Some((page, offset)) = self.place(at) {
            page.read(offset, to);
        }
    }

    fn write(&self, at: usize, from: &[u8]) {
        if let Some((page, offset)) = self.place(at) {
            page.write(offset, from);
        }
    }
}

impl MemoryObject for Pages {
    fn page(&self, index: u64, sharing: Sharing) -> core::result::Result<Page, FaultError> {
        self.ready_page(index, sharing).ok_or(FaultError::Bus)
    }

    fn ready_page(&self, index: u64, _: Sharing) -> Option<Page> {
        self.pages.get(usize::try_from(index).ok()?).cloned()
    }

    fn size(&self) -> u64 {
        (self.pages.len() * PAGE_BYTES) as u64
    }

    fn label(&self) -> &'static str {
        "anon_inode:[io_uring]"
    }
}
