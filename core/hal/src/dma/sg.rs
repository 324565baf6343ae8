//! Scattered memory.

use super::caching::{MemoryType, WriteBack};
use super::owner::{Cpu, Device, KnownToDevice, Owner};
use super::span::HasDeviceAddr;
use super::{DmaBuf, DmaError, DmaRequest, DmaSource, Span};
use alloc::vec::Vec;
use base::{DeviceAddr, PAGE_BYTES};
use core::fmt;
use core::ops::Range;

/// Pages that need not follow each other for a device. They have no common address: a
/// device that can gather is told the spans one by one.
#[derive(Debug)]
pub struct SgList<M: MemoryType = WriteBack, O: Owner = Cpu> {
    /// Each of `PAGE_BYTES`.
    pages: Vec<DmaBuf<M, O>>,
}

/// Pages that were said to be contiguous are not.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NotContiguous {
    /// The first page, counted from 0, that does not follow the one before it.
    pub page: usize,
    /// How many pages there are.
    pub pages: usize,
    /// Where it ought to lie.
    pub expected: DeviceAddr,
    /// Where it lies.
    pub found: DeviceAddr,
}

impl fmt::Display for NotContiguous {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            page,
            pages,
            expected,
            found,
        } = self;
        write!(
            f,
            "page {page} of {pages} lies at {found} and not at {expected}: these frames are \
             scattered and have no common address. Ask for contiguous memory with \
             DmaSource::dma_alloc, or tell the device the spans of the SgList one by one"
        )
    }
}

impl<M: MemoryType> SgList<M, Cpu> {
    /// Zeroed memory of `bytes` bytes, rounded up to pages, page by page.
    pub fn alloc(source: &impl DmaSource, bytes: usize) -> Result<Self, DmaError> {
        let page = DmaRequest::new(PAGE_BYTES, PAGE_BYTES);
        let pages = (0..bytes.div_ceil(PAGE_BYTES)).map(|_| source.dma_alloc(&page));
        Ok(Self {
            pages: pages.collect::<Result<_, _>>()?,
        })
    }

    pub(crate) fn of_pages(pages: Vec<DmaBuf<M, Cpu>>) -> Self {
        debug_assert!(pages.iter().all(|page| page.bytes() == PAGE_BYTES));
        Self { pages }
    }

    /// Hands all pages to a device.
    #[must_use = "memory that is dropped in the device's hands is lost"]
    pub fn give(self) -> SgList<M, Device> {
        SgList {
            pages: self.pages.into_iter().map(DmaBuf::give).collect(),
        }
    }

    /// The same memory as one piece, if it is one: every seam is checked. Where one is
    /// open the pages are freed and the error says which.
    pub fn join(self) -> Result<DmaBuf<M, Cpu>, NotContiguous> {
        let pages = self.pages.len();
        let mut rest = self.pages.into_iter();
        let none = NotContiguous {
            page: 0,
            pages,
            expected: DeviceAddr(0),
            found: DeviceAddr(0),
        };
        let mut whole = rest.next().ok_or(none)?;
        for (index, next) in rest.enumerate() {
            whole = whole
                .join(next)
                .map_err(|(expected, found)| NotContiguous {
                    page: index + 1,
                    expected,
                    found,
                    ..none
                })?;
        }
        Ok(whole)
    }

    /// Copies `from` to `offset`. Panics if it does not fit.
    pub fn copy_in(&self, offset: usize, from: &[u8]) {
        for (page, inside, part) in pieces(offset, from.len()) {
            self.pages[page].copy_in(inside, &from[part]);
        }
    }

    /// Copies from `offset` into all of `to`. Panics if it lies outside.
    pub fn copy_out(&self, offset: usize, to: &mut [u8]) {
        for (page, inside, part) in pieces(offset, to.len()) {
            self.pages[page].copy_out(inside, &mut to[part]);
        }
    }
}

/// How `len` bytes at `offset` lie in pages: which page, where in it, and which of the bytes.
fn pieces(offset: usize, len: usize) -> impl Iterator<Item = (usize, usize, Range<usize>)> {
    let mut done = 0;
    core::iter::from_fn(move || {
        let (at, start) = (offset + done, done);
        let inside = at % PAGE_BYTES;
        done += (len - done).min(PAGE_BYTES - inside);
        (start < len).then_some((at / PAGE_BYTES, inside, start..done))
    })
}

impl<M: MemoryType> SgList<M, Device> {
    /// Takes all pages back; see [`DmaBuf::take_back`].
    pub fn take_back(self) -> SgList<M, Cpu> {
        SgList {
            pages: self.pages.into_iter().map(DmaBuf::take_back).collect(),
        }
    }
}

impl<M: MemoryType, O: Owner> SgList<M, O> {
    /// Bytes in all pages.
    pub fn bytes(&self) -> usize {
        self.pages.len() * PAGE_BYTES
    }
}

impl<M: MemoryType, O: KnownToDevice> SgList<M, O> {
    /// What the device must be told to reach `len` bytes at `offset`, in order, as far as
    /// they lie inside. Neighbours that happen to be contiguous stay apart.
    pub fn spans(&self, offset: usize, len: usize) -> impl Iterator<Item = Span> {
        let end = offset.saturating_add(len).min(self.bytes());
        let pages = self.pages.iter().enumerate();
        pages.filter_map(move |(index, page)| {
            let start = index * PAGE_BYTES;
            let from = offset.max(start);
            let to = end.min(start + PAGE_BYTES);
            (from < to)
                .then(|| page.dev_addr(from - start, to - from))
                .flatten()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sim::SimMemory;

    #[test]
    fn pages_in_order_join_and_are_freed_as_one() {
        let memory = SimMemory::new();
        let area = memory.pages_at(&[7, 8, 9]).join().unwrap();
        assert_eq!(area.bytes(), 3 * PAGE_BYTES);
        area.copy_in(PAGE_BYTES - 2, &[1, 2, 3, 4]);
        let area = area.give();
        let span = area.dev_addr(PAGE_BYTES - 2, 4).unwrap();
        let mut seen = [0; 4];
        memory.read(span.addr(), &mut seen).unwrap();
        assert_eq!(seen, [1, 2, 3, 4], "one address reaches across the seam");
        drop(area.take_back());
        assert_eq!(memory.buffers(), 0);
    }

    #[test]
    fn the_first_open_seam_is_named() {
        let memory = SimMemory::new();
        let error = memory.pages_at(&[7, 8, 5, 9]).join().unwrap_err();
        assert_eq!((error.page, error.pages), (2, 4));
        assert_eq!(error.expected, error.found + 4 * PAGE_BYTES as u64);
        assert_eq!(memory.buffers(), 0, "the pages went back");
        assert!(SgList::<WriteBack>::of_pages(Vec::new()).join().is_err());
    }

    #[test]
    fn a_device_that_gathers_sees_what_was_copied_in() {
        let memory = SimMemory::new();
        let list = memory.pages_at(&[9, 3, 6]);
        let bytes: Vec<u8> = (0..6000u32).map(|at| at as u8).collect();
        list.copy_in(4000, &bytes);
        let list = list.give();
        let mut seen = Vec::new();
        for span in list.spans(4000, 6000) {
            let mut part = alloc::vec![0; span.len() as usize];
            memory.read(span.addr(), &mut part).unwrap();
            seen.extend(part);
        }
        assert_eq!(seen, bytes);
        let mut back = alloc::vec![0; 6000];
        list.take_back().copy_out(4000, &mut back);
        assert_eq!(back, bytes);
    }

    #[test]
    fn spans_end_with_the_memory() {
        let memory = SimMemory::new();
        let list = memory.pages_at(&[1, 5]).give();
        let lens: Vec<u32> = list.spans(4096 - 8, usize::MAX).map(|s| s.len()).collect();
        assert_eq!(lens, [8, 4096]);
        assert_eq!(list.spans(8192, 1).count(), 0);
        drop(list.take_back());
    }
}
