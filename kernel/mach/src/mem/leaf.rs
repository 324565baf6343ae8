//! One last-level table, held while a fault is resolved.
//!
//! A fault looks at an entry, fills it, and often its neighbours: one walk and one hold of
//! the lock serve all of that.

use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};

use base::{PAGE_BYTES, PAGE_SHIFT, VirtAddr};

use super::entry::{self, Mapping, Prot};
use super::table::{describe, look_at, set_bits};
use super::walk::ENTRIES;
use super::{Gather, Page, PageTable, zeros};

/// The entries for the 2 MiB around an address, by [`PageTable::with_leaf`]. Methods take
/// addresses of pages; outside of the 2 MiB nothing is mapped and nothing can be.
pub struct Leaf<'a> {
    table: &'a PageTable,
    resident: &'a AtomicUsize,
    slots: &'a [AtomicU64; ENTRIES],
    /// Address of the first page.
    first: VirtAddr,
}

impl<'a> Leaf<'a> {
    #[inline(always)]
    pub(super) fn new(
        table: &'a PageTable,
        resident: &'a AtomicUsize,
        slots: &'a [AtomicU64; ENTRIES],
        first: VirtAddr,
    ) -> Self {
        Self {
            table,
            resident,
            slots,
            first,
        }
    }

    /// First address behind.
    #[inline]
    pub fn end(&self) -> VirtAddr {
        self.first + (ENTRIES * PAGE_BYTES) as u64
    }

    #[inline(always)]
    fn slot(&self, at: VirtAddr) -> Option<&AtomicU64> {
        self.slots
            .get((at.0.wrapping_sub(self.first.0) >> PAGE_SHIFT) as usize)
    }

    /// What is mapped at `at`.
    #[inline]
    pub fn mapping(&self, at: VirtAddr) -> Option<Mapping> {
        look_at(self.slot(at)?.load(Relaxed), describe)
    }

    /// Whether a page can be mapped at `at`.
    #[inline]
    pub fn is_empty(&self, at: VirtAddr) -> bool {
        self.slot(at).is_some_and(|slot| slot.load(Relaxed) == 0)
    }

    /// Maps `page` at an empty place, or gives it back. No other CPU needs to be told.
    #[inline]
    pub fn map(&self, at: VirtAddr, page: Page, prot: Prot) -> Result<(), Page> {
        match self.slot(at) {
            Some(slot) if slot.load(Relaxed) == 0 => {
                slot.store(entry::link(page.into_frame(), prot.bits()), Relaxed);
                self.resident.fetch_add(1, Relaxed);
                Ok(())
            }
            _ => Err(page),
        }
    }

    /// Lets an empty place show zeros, which takes no memory and cannot be stored to.
    /// False if that needs memory after all and there is none.
    #[inline]
    pub fn map_zeros(&self, at: VirtAddr, prot: Prot) -> bool {
        let Some(entry) = zeros::entry(prot) else {
            return false;
        };
        if let Some(slot) = self.slot(at).filter(|slot| slot.load(Relaxed) == 0) {
            slot.store(entry, Relaxed);
        }
        true
    }

    /// Gives the page at `at` these permissions; only this CPU is told (others fault once
    /// more at most, so use it to add rights).
    #[inline]
    pub fn grant(&self, at: VirtAddr, prot: Prot) {
        let Some(slot) = self.slot(at) else { return };
        let old = slot.load(Relaxed);
        if entry::owns_page(old) {
            set_bits(slot, old, prot.bits());
            arch::instr::invlpg(at.0);
        }
    }

    /// A new page with the content of the one at `at`; `None` when memory is short or
    /// nothing is mapped.
    #[inline]
    pub fn copy(&self, at: VirtAddr) -> Option<Page> {
        look_at(self.slot(at)?.load(Relaxed), |_, page| Page::copy_of(page))?
    }

    /// Puts `page` in place of what is at `at`. No CPU sees the old page once any CPU
    /// sees the new one.
    #[inline]
    pub fn replace(&self, at: VirtAddr, page: Page, prot: Prot) {
        let Some(slot) = self.slot(at) else { return };
        let old = slot.swap(0, Relaxed);
        let mut gather = Gather::new(self.table);
        if entry::owns_page(old) {
            gather.push(at, Page::from_frame(entry::frame(old)));
        } else {
            gather.note(at);
            self.resident.fetch_add(1, Relaxed);
        }
        gather.flush();
        slot.store(entry::link(page.into_frame(), prot.bits()), Relaxed);
    }
}
