//! An object as it is mapped at an offset that only tells which of several objects is meant.

use alloc::sync::Arc;

use base::PAGE_BYTES;
use mach::mem::fallible;
use sync::{Error, Result};

use super::{FaultError, MemoryObject, Page, Sharing};

/// See the module.
pub struct Window {
    object: Arc<dyn MemoryObject>,
    first_page: u64,
}

impl Window {
    /// `bytes` of the object at `offset`.
    ///
    /// Errors: `Invalid` if it has fewer.
    pub fn new(object: Arc<dyn MemoryObject>, offset: u64, bytes: u64) -> Result<Arc<Self>> {
        if bytes > object.size() {
            return Err(Error::Invalid);
        }
        Ok(fallible::arc(Self {
            object,
            first_page: offset / PAGE_BYTES as u64,
        })?)
    }
}

impl MemoryObject for Window {
    fn page(&self, index: u64, sharing: Sharing) -> core::result::Result<Page, FaultError> {
        let index = index.checked_sub(self.first_page).ok_or(FaultError::Bus)?;
        self.object.page(index, sharing)
    }

    fn ready_page(&self, index: u64, sharing: Sharing) -> Option<Page> {
        let index = index.checked_sub(self.first_page)?;
        self.object.ready_page(index, sharing)
    }

    fn size(&self) -> u64 {
        self.first_page * PAGE_BYTES as u64 + self.object.size()
    }

    fn label(&self) -> &'static str {
        self.object.label()
    }
}
