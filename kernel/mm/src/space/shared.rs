//! Anonymous memory that a program shares with its children (`MAP_SHARED|ANONYMOUS`).

use alloc::collections::BTreeMap;
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

use base::PAGE_BYTES;
use mach::sync::Spin;
use sync::Result;

use super::commit::Promise;
use super::{FaultError, MemoryObject, Page, Sharing};
use crate::garbage;

/// Pages of files in memory and of shared anonymous memory. A figure of the machine, for
/// /proc/meminfo.
static PAGES: AtomicU64 = AtomicU64::new(0);

/// How many pages there are of that kind.
pub fn page_count() -> u64 {
    PAGES.load(Relaxed)
}

/// So many more were made.
pub fn count_pages(more: u64) {
    PAGES.fetch_add(more, Relaxed);
}

/// So many are gone.
pub fn uncount_pages(gone: u64) {
    PAGES.fetch_sub(gone, Relaxed);
}

/// Pages full of zeros, made when they are first touched.
pub struct SharedMemory {
    pages: Spin<BTreeMap<u64, Page>>,
    bytes: u64,
    /// For all pages, or for those that were made.
    promise: Spin<Promise>,
    is_promised: bool,
}

impl SharedMemory {
    /// `bytes` bytes of zeros, all promised now.
    pub fn new(bytes: u64) -> Result<Self> {
        let mut memory = Self::sparse(bytes);
        let whole = bytes.next_multiple_of(PAGE_BYTES as u64);
        memory.promise.get_mut().grow(whole)?;
        memory.is_promised = true;
        Ok(memory)
    }

    /// `bytes` bytes of zeros, promised page by page when they are touched.
    pub fn sparse(bytes: u64) -> Self {
        Self {
            pages: Spin::new(BTreeMap::new()),
            bytes,
            promise: Spin::default(),
            is_promised: false,
        }
    }

    /// A page was made. A program that is refused gets SIGBUS.
    fn promise_page(&self) -> core::result::Result<(), FaultError> {
        if self.is_promised {
            return Ok(());
        }
        let promised = self.promise.lock().grow(PAGE_BYTES as u64);
        promised.map_err(|_| FaultError::Bus)
    }
}

impl Drop for SharedMemory {
    fn drop(&mut self) {
        let pages = core::mem::take(self.pages.get_mut());
        uncount_pages(pages.len() as u64);
        garbage::discard(pages);
    }
}

impl MemoryObject for SharedMemory {
    fn page(&self, index: u64, _: Sharing) -> core::result::Result<Page, FaultError> {
        if index >= self.bytes.div_ceil(PAGE_BYTES as u64) {
            return Err(FaultError::Bus);
        }
        let mut pages = self.pages.lock();
        if let Some(page) = pages.get(&index) {
            return Ok(page.clone());
        }
        let page = Page::zeroed().ok_or(FaultError::OutOfMemory)?;
        self.promise_page()?;
        pages.insert(index, page.clone());
        count_pages(1);
        Ok(page)
    }

    fn ready_page(&self, index: u64, _: Sharing) -> Option<Page> {
        self.pages.lock().get(&index).cloned()
    }

    fn size(&self) -> u64 {
        self.bytes
    }

    fn may_be_pinned(&self) -> bool {
        true
    }

    fn label(&self) -> &'static str {
        "/dev/zero (deleted)"
    }
}
