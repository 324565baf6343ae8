//! The memory that a ring shares with its program.
//!
//! The kernel keeps the pages for as long as the ring or a mapping of it lives. Programs may
//! write to them at any time, so nothing that is read from them is trusted (`core/capture`).

use alloc::vec::Vec;
use core::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use base::{PAGE_BYTES, SharedMemory};
use capture::RingMemory;
use mach::mem::Page;
use mach::mem::fallible::TryGrow;
use mm::{FaultError, MemoryObject, Sharing};
use sync::{Error, Result};

/// All rings together have at most this share of memory.
const MEMORY_SHARE: usize = 8;

/// The limit is on what all rings hold together: memory is the machine's.
static PAGES_HELD: AtomicUsize = AtomicUsize::new(0);

/// Bytes that one more ring may have now.
pub fn bytes_left() -> u64 {
    let limit = mach::mem::stats().total as usize / MEMORY_SHARE;
    (limit.saturating_sub(PAGES_HELD.load(Relaxed)) * PAGE_BYTES) as u64
}

/// A ring's pages.
pub struct SharedPages {
    pages: Vec<Page>,
}

impl SharedPages {
    /// `bytes` bytes of zeros.
    pub fn new(bytes: usize) -> Result<Self> {
        let count = bytes.div_ceil(PAGE_BYTES);
        let mut pages = Vec::new();
        pages.make_room(count).map_err(|_| Error::OutOfMemory)?;
        for _ in 0..count {
            pages.push(Page::zeroed().ok_or(Error::OutOfMemory)?);
        }
        PAGES_HELD.fetch_add(count, Relaxed);
        Ok(Self { pages })
    }

    /// The page that `at` lies in, and where.
    fn place(&self, at: usize) -> Option<(&Page, usize)> {
        Some((self.pages.get(at / PAGE_BYTES)?, at % PAGE_BYTES))
    }
}

impl Drop for SharedPages {
    fn drop(&mut self) {
        PAGES_HELD.fetch_sub(self.pages.len(), Relaxed);
    }
}

impl RingMemory for &SharedPages {
    fn write(&mut self, mut at: usize, mut bytes: &[u8]) {
        while let Some((page, offset)) = self.place(at)
            && !bytes.is_empty()
        {
            let (now, rest) = bytes.split_at(bytes.len().min(PAGE_BYTES - offset));
            page.write(offset, now);
            at += now.len();
            bytes = rest;
        }
    }

    fn status(&self, at: usize) -> u32 {
        self.load(at)
    }

    fn publish(&mut self, at: usize, status: u32) {
        self.store(at, status);
    }
}

impl SharedMemory for SharedPages {
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

impl MemoryObject for SharedPages {
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
        "socket:[packet]"
    }
}
