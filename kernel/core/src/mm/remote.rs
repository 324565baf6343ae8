//! Looking into an address space that need not be the current one.

use base::{PAGE_BYTES, VirtAddr};

use super::{Access, AddressSpace, Page};
use crate::error::{Error, Result};

impl AddressSpace {
    /// The page at `at`, if one is mapped there.
    pub fn page(&self, at: VirtAddr) -> Option<Page> {
        self.table().ok()?.page(at.page_floor())
    }

    /// Copies bytes from `at` into `to`; returns how many were readable. May block.
    pub fn peek(&self, at: VirtAddr, to: &mut [u8]) -> Result<usize> {
        let mut done = 0;
        while done < to.len() {
            let now = at + done as u64;
            let (page, offset) = (now.page_floor(), now.page_offset());
            if self.fault(page, Access::Read).is_err() {
                break;
            }
            let len = (PAGE_BYTES - offset).min(to.len() - done);
            let Some(page) = self.table()?.page(page) else {
                continue;
            };
            page.read(offset, &mut to[done..done + len]);
            done += len;
        }
        if done == 0 && !to.is_empty() {
            Err(Error::BadAddress)
        } else {
            Ok(done)
        }
    }
}
