//! Looking into an address space that need not be the current one.

use core::ops::Range;

use base::{PAGE_BYTES, VirtAddr};
use sync::{Error, Result};

use super::{Access, AddressSpace, Object, Page, Reach};

impl AddressSpace {
    /// The page at `at`, if one is mapped there.
    pub fn page(&self, at: VirtAddr) -> Option<Page> {
        self.table().ok()?.page(at.page_floor())
    }

    /// Copies bytes from `at` into `to`; returns how many were readable. May block.
    pub fn peek(&self, at: VirtAddr, to: &mut [u8]) -> Result<usize> {
        let len = to.len();
        self.visit(at, len, Access::Read, Reach::Program, |done, page, part| {
            page.read(part.start, &mut to[done..done + part.len()]);
        })
    }

    /// Copies `from` to `at`; returns how many bytes were writable. A tracer also changes what
    /// is read-only, if it is private; the program gets a copy of the page. May block.
    pub fn poke(&self, at: VirtAddr, from: &[u8], reach: Reach) -> Result<usize> {
        self.visit(at, from.len(), Access::Write, reach, |done, page, part| {
            page.write(part.start, &from[done..done + part.len()]);
        })
    }

    /// What was stored to a page of an object is marked again: who brought the page to where it is kept may have taken the
    /// mark before the bytes came. The caller holds the page until then.
    fn mark_stored(&self, page: VirtAddr) {
        if let Some((object, index)) = self.shared_page(page) {
            object.memory.mark_stored(index);
        }
    }

    /// Which page of which object is mapped shared at `page`.
    pub(super) fn shared_page(&self, page: VirtAddr) -> Option<(Object, u64)> {
        let state = self.lock();
        let area = state.areas.find(page).filter(|area| area.traits.shared)?;
        let index = area.offset_of(page)? / PAGE_BYTES as u64;
        Some((area.backing.as_ref()?.object.clone(), index))
    }

    /// Shows `act` each page of a range: how many bytes came before it, the page, and which
    /// part of it is meant.
    fn visit(
        &self,
        at: VirtAddr,
        len: usize,
        access: Access,
        reach: Reach,
        mut act: impl FnMut(usize, &Page, Range<usize>),
    ) -> Result<usize> {
        let mut done = 0;
        while done < len {
            let now = at + done as u64;
            let (page, offset) = (now.page_floor(), now.page_offset());
            if self.fault_as(page, access, reach).is_err() {
                break;
            }
            let Some(page) = self.table()?.page(page) else {
                continue;
            };
            let part = offset..PAGE_BYTES.min(offset + len - done);
            act(done, &page, part.clone());
            if access == Access::Write {
                self.mark_stored(now.page_floor());
            }
            done += part.len();
        }
        if done == 0 && len != 0 {
            Err(Error::BadAddress)
        } else {
            Ok(done)
        }
    }
}
