//! Pages on their way out of a page table.
//!
//! By **Late** a page may be given back only when no CPU can translate to it. Telling
//! the CPUs is dear, so pages are gathered and the CPUs told once per batch.

use base::{PAGE_BYTES, VirtAddr};

use super::{Page, PageTable, tlb};

/// Pages that wait for one flush.
const BATCH: usize = 64;

/// Collects pages and changed addresses; flushes when full and when dropped.
#[derive(Debug)]
pub struct Gather<'a> {
    table: &'a PageTable,
    pages: [Option<Page>; BATCH],
    len: usize,
    /// The pages that lost rights lie in `[changed_from, changed_to)`.
    changed_from: u64,
    changed_to: u64,
}

impl<'a> Gather<'a> {
    /// Nothing gathered yet from `table`.
    pub fn new(table: &'a PageTable) -> Self {
        Self {
            table,
            pages: [const { None }; BATCH],
            len: 0,
            changed_from: u64::MAX,
            changed_to: 0,
        }
    }

    /// Takes a page that was mapped at `at`.
    pub fn push(&mut self, at: VirtAddr, page: Page) {
        if self.len == BATCH {
            self.flush();
        }
        self.note(at);
        if let Some(slot) = self.pages.get_mut(self.len) {
            *slot = Some(page);
            self.len += 1;
        }
    }

    /// The page at `at` lost rights.
    pub fn note(&mut self, at: VirtAddr) {
        self.changed_from = self.changed_from.min(at.0);
        self.changed_to = self.changed_to.max(at.0 + PAGE_BYTES as u64);
    }

    /// Tells all CPUs that use the table, then gives the pages back.
    pub fn flush(&mut self) {
        if self.changed_from < self.changed_to {
            tlb::flush(&self.table.id, self.changed_from..self.changed_to);
            (self.changed_from, self.changed_to) = (u64::MAX, 0);
        }
        self.pages[..self.len].fill_with(|| None);
        self.len = 0;
    }
}

impl Drop for Gather<'_> {
    fn drop(&mut self) {
        self.flush();
    }
}
