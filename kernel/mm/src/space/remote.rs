//! Looking into an address space that need not be the current one.

use core::ops::Range;

use base::{PAGE_BYTES, VirtAddr};
use mach::mem::Mapping;
use sync::{Error, Result};
use vma::Area;

use super::{Access, AddressSpace, Object, Page, Reach};

/// How often in a row others may change a page's mapping before we give up.
const TRIES: usize = 16;

/// A page of an object, by its number.
pub(super) type ObjectPage = (Object, u64);

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
        let (mut done, mut tries) = (0, 0);
        while done < len && tries < TRIES {
            let now = at + done as u64;
            let offset = now.page_offset();
            if self.fault_as(now.page_floor(), access, reach).is_err() {
                break;
            }
            let Some((page, object)) = self.reached(now.page_floor(), access)? else {
                tries += 1;
                continue;
            };
            let part = offset..PAGE_BYTES.min(offset + len - done);
            act(done, &page, part.clone());
            // Who brought the page to where it is kept may have taken the mark before the bytes came.
            if let Some((object, index)) = object {
                object.memory.mark_stored(index);
            }
            (done, tries) = (done + part.len(), 0);
        }
        if done == 0 && len != 0 {
            Err(Error::BadAddress)
        } else {
            Ok(done)
        }
    }

    /// The page that a fault has just allowed to access so, and to whom a store to it is told. `None` where somebody has changed
    /// that since: what is there now may be a file's.
    fn reached(&self, at: VirtAddr, access: Access) -> Result<Option<(Page, Option<ObjectPage>)>> {
        let state = self.lock();
        let (Some(area), Some((page, mapping))) = (state.areas.find(at), self.table()?.mapped(at))
        else {
            return Ok(None);
        };
        Ok(match access {
            Access::Write if !may_store(area, mapping) => None,
            Access::Write => Some((page, object_page(area, at))),
            Access::Read | Access::Execute => Some((page, None)),
        })
    }
}

/// Whether a mapped page may be stored to: by the program, or as one that is its own.
fn may_store(area: &Area<Object>, mapping: Mapping) -> bool {
    let is_own = !mapping.zeros && (!mapping.shared || area.traits.pinned);
    mapping.writable || !area.traits.shared && is_own
}

/// What an area shows at an address, if others see it, too.
pub(super) fn object_page(area: &Area<Object>, at: VirtAddr) -> Option<ObjectPage> {
    let backing = area.backing.as_ref().filter(|_| area.traits.shared)?;
    Some((
        backing.object.clone(),
        area.offset_of(at)? / PAGE_BYTES as u64,
    ))
}
