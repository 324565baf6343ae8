//! Pages of a program's that are pinned for many requests.

use alloc::vec::Vec;
use core::ops::Range;

use base::PAGE_BYTES;
use hal::Span;
use mach::mem::fallible::TryGrow;
use mach::mem::{Page, Pinned};
use mm::garbage;
use sync::{Error, Result};

/// Pages of a program's, pinned, as devices are told of them.
pub struct LentPages {
    spans: Vec<Span>,
    pages: Vec<Page>,
}

impl LentPages {
    /// These pages, in this order.
    ///
    /// Errors: `Unsupported` where an IOMMU translates, which would have to be told of each; `OutOfMemory`.
    pub fn new(pages: Vec<Page>) -> Result<Self> {
        let mut lent = Self {
            spans: Vec::new(),
            pages,
        };
        lent.spans.make_room(lent.pages.len())?;
        for page in &lent.pages {
            let pinned = Pinned::new(page.clone(), ()).ok_or(Error::Unsupported)?;
            let span = Span::of_lent(&pinned, 0, PAGE_BYTES).ok_or(Error::Unsupported)?;
            lent.spans.push(span);
        }
        Ok(lent)
    }

    /// Bytes in all.
    pub fn bytes(&self) -> u64 {
        self.pages.len() as u64 * PAGE_BYTES as u64
    }

    /// Whole pages.
    #[inline]
    pub(crate) fn spans(&self, pages: &Range<usize>) -> &[Span] {
        self.spans.get(pages.clone()).unwrap_or(&[])
    }

    /// Bytes of one page.
    #[inline]
    pub(crate) fn part(&self, bytes: &Range<u64>) -> Option<Span> {
        let page = self.spans.get(bytes.start as usize / PAGE_BYTES)?;
        let offset = bytes.start as usize % PAGE_BYTES;
        page.part(offset as u32, (bytes.end - bytes.start) as u32)
    }
}

impl Drop for LentPages {
    /// Whoever has them last may be where a request's end is told.
    fn drop(&mut self) {
        garbage::discard(core::mem::take(&mut self.pages));
    }
}
