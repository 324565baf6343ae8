//! Pages of a program's that are pinned for many requests of one disk.
//!
//! Where an IOMMU translates they are mapped for the disk as long as they are lent, at the addresses where they lie; so a
//! page is lent to one disk once. They are given back when the unit has forgotten them, and when the last request of theirs
//! is over.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::ops::Range;

use base::PAGE_BYTES;
use hal::Span;
use mach::mem::fallible::{self, TryGrow};
use mach::mem::{DmaMemory, Page, Reached};
use mm::garbage::{self, Heap, Pages};
use sync::{Error, Result};

/// Pages of a program's, pinned, as a disk is told of them.
pub struct LentPages {
    spans: Vec<Span>,
    pages: Option<Box<Lent>>,
}

/// As the disk reaches them.
struct Lent(Vec<Reached>);

impl LentPages {
    /// These pages, in this order, for a disk whose memory that is.
    ///
    /// Errors: `Busy` if one of them cannot be mapped, as it is lent to the disk already; `OutOfMemory`.
    pub fn new(pages: Vec<Page>, disk: DmaMemory) -> Result<Self> {
        let mut lent = fallible::boxed(Lent(Vec::new()))?;
        let mut spans = Vec::new();
        spans.make_room(pages.len())?;
        lent.0.make_room(pages.len())?;
        for page in pages {
            let reached = Reached::new(page, disk).ok_or(Error::Busy)?;
            spans.push(Span::of_lent(&reached, 0, PAGE_BYTES).ok_or(Error::Unsupported)?);
            lent.0.push(reached);
            sched::resched_point();
        }
        let pages = Some(lent);
        Ok(Self { spans, pages })
    }

    /// Bytes in all.
    pub fn bytes(&self) -> u64 {
        self.spans.len() as u64 * PAGE_BYTES as u64
    }

    /// Whole pages.
    #[inline]
    pub(crate) fn spans(&self, pages: &Range<u32>) -> &[Span] {
        let pages = pages.start as usize..pages.end as usize;
        self.spans.get(pages).unwrap_or(&[])
    }

    /// Bytes of one page.
    #[inline]
    pub(crate) fn part(&self, bytes: &Range<u64>) -> Option<Span> {
        let page = self.spans.get(bytes.start as usize / PAGE_BYTES)?;
        let offset = bytes.start as usize % PAGE_BYTES;
        page.part(offset as u32, (bytes.end - bytes.start) as u32)
    }
}

impl Pages for Lent {
    fn len(&self) -> usize {
        self.0.len()
    }

    /// The page goes with its mapping.
    fn pop(&mut self) -> Option<Page> {
        drop(self.0.pop());
        None
    }
}

impl Drop for LentPages {
    /// Whoever has them last may be where a request's end is told.
    fn drop(&mut self) {
        if let Some(pages) = self.pages.take() {
            garbage::discard(Heap::Others(pages));
        }
    }
}
