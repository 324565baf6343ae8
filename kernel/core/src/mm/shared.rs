//! Anonymous memory that a program shares with its children (`MAP_SHARED|ANONYMOUS`).

use alloc::collections::BTreeMap;

use base::PAGE_BYTES;
use mach::sync::Spin;

use super::{FaultError, MemoryObject, Page, Sharing};

/// Pages full of zeros, made when they are first touched.
pub struct SharedMemory {
    pages: Spin<BTreeMap<u64, Page>>,
    bytes: u64,
}

impl SharedMemory {
    /// `bytes` bytes of zeros.
    pub fn new(bytes: u64) -> Self {
        Self {
            pages: Spin::new(BTreeMap::new()),
            bytes,
        }
    }
}

impl MemoryObject for SharedMemory {
    fn page(&self, index: u64, _: Sharing) -> Result<Page, FaultError> {
        if index >= self.bytes.div_ceil(PAGE_BYTES as u64) {
            return Err(FaultError::Bus);
        }
        let mut pages = self.pages.lock();
        if let Some(page) = pages.get(&index) {
            return Ok(page.clone());
        }
        let page = Page::zeroed().ok_or(FaultError::OutOfMemory)?;
        pages.insert(index, page.clone());
        Ok(page)
    }

    fn ready_page(&self, index: u64, _: Sharing) -> Option<Page> {
        self.pages.lock().get(&index).cloned()
    }

    fn size(&self) -> u64 {
        self.bytes
    }

    fn label(&self) -> &'static str {
        "/dev/zero (deleted)"
    }
}
