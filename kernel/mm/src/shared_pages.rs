//! Memory that the kernel shares with a program: rings and tables that both work in.
//!
//! The pages live as long as their owner in the kernel or a mapping of them. Programs may write to them at
//! any time, so nothing that is read from them is trusted.
//!
//! Bound: all pages of a [`PageBudget`] together are a share of the machine's memory.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use base::{PAGE_BYTES, SharedMemory};
use mach::mem::Page;
use mach::mem::fallible::{self, TryGrow};
use sync::{Error, Result};

use crate::space::{FaultError, MemoryObject, Sharing};

/// How much all shared pages of one kind may take.
pub struct PageBudget {
    share: usize,
    held: AtomicUsize,
}

impl PageBudget {
    /// One `share`th of the machine's memory.
    pub const fn share_of_memory(share: usize) -> Self {
        Self {
            share,
            held: AtomicUsize::new(0),
        }
    }

    fn limit(&self) -> usize {
        mach::mem::stats().total as usize / self.share
    }

    /// Bytes that nobody has taken.
    pub fn bytes_left(&self) -> u64 {
        (self.limit().saturating_sub(self.held.load(Relaxed)) * PAGE_BYTES) as u64
    }

    fn take(&self, pages: usize) -> Result<()> {
        let limit = self.limit();
        let more = |held: usize| held.checked_add(pages).filter(|sum| *sum <= limit);
        let taken = self.held.fetch_update(Relaxed, Relaxed, more);
        taken.map(|_| ()).map_err(|_| Error::OutOfMemory)
    }
}

/// See the module.
pub struct SharedPages {
    pages: Vec<Page>,
    counted: usize,
    budget: &'static PageBudget,
    label: &'static str,
}

impl SharedPages {
    /// `bytes` bytes of zeros, which /proc/PID/maps shows as `label`.
    ///
    /// Errors: `OutOfMemory`, also where the budget is spent.
    pub fn new(
        bytes: usize,
        budget: &'static PageBudget,
        label: &'static str,
    ) -> Result<Arc<Self>> {
        let count = bytes.div_ceil(PAGE_BYTES);
        budget.take(count)?;
        let mut new = Self {
            pages: Vec::new(),
            counted: count,
            budget,
            label,
        };
        new.pages.make_room(count)?;
        for _ in 0..count {
            new.pages.push(Page::zeroed().ok_or(Error::OutOfMemory)?);
        }
        Ok(fallible::arc(new)?)
    }

    /// The page that a byte lies in, and where; `None` behind the end.
    pub fn place(&self, at: usize) -> Option<(&Page, usize)> {
        Some((self.pages.get(at / PAGE_BYTES)?, at % PAGE_BYTES))
    }
}

impl Drop for SharedPages {
    fn drop(&mut self) {
        self.budget.held.fetch_sub(self.counted, Relaxed);
    }
}

/// Words and entries are aligned, so none lies across two pages.
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
        self.label
    }
}
