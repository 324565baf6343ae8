//! Pages on their way out of a page table.
//!
//! By **Late** a page may be given back only when no CPU can translate to it. Telling
//! the CPUs is expensive, so pages are gathered and the CPUs told once per batch. A batch lies on
//! the stack, so gathering can not fail, and holds as many pages as a last-level table maps:
//! an unmapping of 2 MiB is one batch, and in a larger one the interrupt costs little
//! beside giving back its 512 pages. Page tables that are swept (`sweep`) leave the same way; for them
//! more CPUs have to be told.

use core::mem::MaybeUninit;

use base::{PAGE_BYTES, VirtAddr};
use frames::FrameNo;

use super::stack::STACK_BYTES;
use super::walk::ENTRIES;
use super::{Page, PageTable, tlb};

/// Pages that wait for one flush.
const BATCH: usize = ENTRIES;

const _: () = assert!(
    BATCH * size_of::<Page>() <= STACK_BYTES / 8,
    "a batch lies on the stack"
);

/// Collects pages and changed addresses; flushes when full and when dropped.
#[derive(Debug)]
pub struct Gather<'a> {
    table: &'a PageTable,
    /// The first `len` are there.
    pages: [MaybeUninit<Page>; BATCH],
    len: usize,
    /// The pages that lost rights, so many, lie in `[changed_from, changed_to)`.
    changed_from: u64,
    changed_to: u64,
    changed: u64,
    /// Some of the pages were tables.
    has_tables: bool,
}

impl<'a> Gather<'a> {
    /// Nothing gathered yet from `table`.
    pub fn new(table: &'a PageTable) -> Self {
        Self {
            table,
            pages: [const { MaybeUninit::uninit() }; BATCH],
            len: 0,
            changed_from: u64::MAX,
            changed_to: 0,
            changed: 0,
            has_tables: false,
        }
    }

    /// Takes a page that was mapped at `at`.
    pub fn push(&mut self, at: VirtAddr, page: Page) {
        if self.len == BATCH {
            self.flush();
        }
        self.note(at);
        self.keep(page);
    }

    /// A table on the way to `at` was unlinked.
    pub(super) fn note_table(&mut self, at: VirtAddr) {
        // To forget any page forgets all tables.
        if self.changed_from >= self.changed_to {
            let page = at.page_floor().0;
            (self.changed_from, self.changed_to) = (page, page + PAGE_BYTES as u64);
        }
    }

    /// Takes a table that was unlinked.
    pub(super) fn push_table(&mut self, table: FrameNo) {
        if self.len == BATCH {
            self.flush();
        }
        self.note_table(VirtAddr(0));
        self.has_tables = true;
        self.keep(Page::from_frame(table));
    }

    fn keep(&mut self, page: Page) {
        self.pages[self.len].write(page);
        self.len += 1;
    }

    /// The page at `at` lost rights.
    pub fn note(&mut self, at: VirtAddr) {
        self.changed_from = self.changed_from.min(at.0);
        self.changed_to = self.changed_to.max(at.0 + PAGE_BYTES as u64);
        self.changed += 1;
    }

    /// Tells all CPUs that use the table, then gives the pages back.
    pub fn flush(&mut self) {
        if self.changed_from < self.changed_to {
            let range = self.changed_from..self.changed_to;
            match core::mem::take(&mut self.has_tables) {
                false => tlb::flush(&self.table.id, range, self.changed),
                true => tlb::flush_tables(&self.table.id, range, self.changed),
            }
            (self.changed_from, self.changed_to, self.changed) = (u64::MAX, 0, 0);
        }
        for page in &mut self.pages[..core::mem::take(&mut self.len)] {
            // SAFETY: `push` wrote the first `len`, and the length is 0 from here on.
            unsafe { page.assume_init_drop() };
        }
    }
}

impl Drop for Gather<'_> {
    fn drop(&mut self) {
        self.flush();
    }
}
