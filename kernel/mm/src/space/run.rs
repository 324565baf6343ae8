//! Faults of a program that goes through fresh memory page by page.
//!
//! A fault costs more than a page: so a run of faults, each right behind what the one before
//! brought, brings twice as many pages each time. It never brings more than the program
//! has touched in the run, so that memory that is resident stays memory that is used; and
//! one page alone when memory is short.

use base::{PAGE_BYTES, VirtAddr};
use mach::mem::{Leaf, Page, is_short};
use vma::Area;

use super::Object;
use super::address_space::prot;
use super::fault::{Access, FaultError, Result};

/// Pages that one fault brings at most: 64 KiB.
const PAGES_MAX: u64 = 16;
const PAGE: u64 = PAGE_BYTES as u64;

/// Where the last fault on anonymous memory was.
#[derive(Clone, Copy, Default)]
pub(super) struct Run {
    /// First address behind what it brought.
    next: VirtAddr,
    /// Pages that it was allowed to bring.
    pages: u64,
    /// Bytes that the run has brought.
    bytes: u64,
}

impl Run {
    /// Bytes of the run that a fault at `at` continues.
    pub fn bytes_before(&self, at: VirtAddr) -> u64 {
        if at == self.next { self.bytes } else { 0 }
    }

    /// Something else than [`Run::fill`] brought `bytes` bytes at `at`.
    pub fn note(&mut self, at: VirtAddr, bytes: u64) {
        self.bytes = self.bytes_before(at) + bytes;
        self.next = at + bytes;
        self.pages = PAGES_MAX;
    }

    /// Fills the empty place at `at` in anonymous memory, and what follows in a run: with
    /// zeros that are shared until they are stored to, or with pages of its own.
    #[inline]
    pub fn fill(
        &mut self,
        leaf: &Leaf<'_>,
        area: &Area<Object>,
        at: VirtAddr,
        access: Access,
    ) -> Result<()> {
        let goes_on = at == self.next && !is_short();
        self.pages = if goes_on {
            (2 * self.pages).min(PAGES_MAX)
        } else {
            1
        };
        let end = area.end.min(leaf.end()).min(at + self.pages * PAGE);
        let rights = prot(area.access);
        let mut now = at;
        while now < end && leaf.is_empty(now) {
            let filled = match access {
                Access::Write => {
                    Page::zeroed().is_some_and(|page| leaf.map(now, page, rights).is_ok())
                }
                Access::Read | Access::Execute => leaf.map_zeros(now, rights),
            };
            if !filled {
                break;
            }
            now = now + PAGE;
        }
        self.bytes = self.bytes_before(at) + (now - at);
        self.next = now;
        if now == at {
            return Err(FaultError::OutOfMemory);
        }
        Ok(())
    }
}
