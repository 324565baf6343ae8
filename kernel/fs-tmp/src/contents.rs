//! The bytes of a regular file in memory: sparse pages over a part of the boot image.
//!
//! Byte `n` is in page `n / 4096` if that page exists, else in the boot image if
//! `n < boot_len`, else it is zero. Invariants: a page that exists holds zeroes beyond
//! the file's size; `boot_len <= size`; `page_count` is how many pages exist, written under their
//! lock, so that a file which has none, as every program of the boot image that nobody writes to,
//! is read and mapped without it.
//!
//! A write copies from the program straight into the page, without any spin lock held,
//! as the copy may fault. Writers exclude each other by `writing`, so that appends do not
//! mix; a mapping's fault never takes that lock.

use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::ops::Range;
use core::sync::atomic::{AtomicU64, Ordering};

use base::PAGE_BYTES;
use mach::sync::Spin;
use mm::garbage;
use mm::io::{Sink, Source};
use mm::{Page, Sharing};
use sched::resched_point;
use sync::{Error, Mutex, Result};

use super::System;

const PAGE: u64 = PAGE_BYTES as u64;
/// The largest file (Linux's limit on 64-bit machines).
const SIZE_MAX: u64 = i64::MAX as u64;

/// Gets pages, by number, that the file has lost, and that programs may still map.
pub type Forget<'a> = &'a mut dyn FnMut(&[(u64, Page)]);

/// Pages that are looked at or freed under one hold of the lock.
const BATCH_PAGES: usize = 256;

/// A file's bytes.
pub struct Contents {
    size: AtomicU64,
    boot: &'static [u8],
    boot_len: AtomicU64,
    pages: Spin<BTreeMap<u64, Page>>,
    page_count: AtomicU64,
    /// Held while the file is written or its size changes.
    pub writing: Mutex<()>,
    system: Arc<System>,
}

impl Contents {
    /// Those of the boot image; an empty file has none.
    pub fn new(system: Arc<System>, boot: &'static [u8]) -> Self {
        Self {
            size: AtomicU64::new(boot.len() as u64),
            boot,
            boot_len: AtomicU64::new(boot.len() as u64),
            pages: Spin::new(BTreeMap::new()),
            page_count: AtomicU64::new(0),
            writing: Mutex::new(()),
            system,
        }
    }

    /// Bytes.
    pub fn size(&self) -> u64 {
        self.size.load(Ordering::Acquire)
    }

    /// Units of 512 bytes that it occupies: those of its pages, and of the boot image.
    pub fn blocks(&self) -> u64 {
        let boot = self.boot_len.load(Ordering::Acquire).div_ceil(512);
        boot.max(self.page_count() * (PAGE / 512))
    }

    fn page_count(&self) -> u64 {
        self.page_count.load(Ordering::Acquire)
    }

    /// `pages`, which are locked, have become more or fewer.
    fn count(&self, pages: &BTreeMap<u64, Page>) {
        self.page_count.store(pages.len() as u64, Ordering::Release);
    }

    /// The part of the boot image in `range`, as far as it reaches.
    fn boot_bytes(&self, range: Range<u64>) -> &'static [u8] {
        let end = range.end.min(self.boot_len.load(Ordering::Acquire));
        self.boot
            .get(range.start as usize..end as usize)
            .unwrap_or(&[])
    }

    fn existing(&self, index: u64) -> Option<Page> {
        match self.page_count() {
            0 => None,
            _ => self.pages.lock().get(&index).cloned(),
        }
    }

    /// Reads from `offset` on.
    pub fn read(&self, offset: u64, to: &mut Sink<'_>) -> Result<usize> {
        let start = to.done();
        let mut at = offset;
        loop {
            let left = self.size().saturating_sub(at).min(to.remaining() as u64);
            if left == 0 {
                return Ok(to.done() - start);
            }
            match self.read_some(at, left, to) {
                Ok(count) => at += count as u64,
                Err(error) if to.done() == start => return Err(error),
                Err(_) => return Ok(to.done() - start),
            }
        }
    }

    /// Reads at most to the end of the page.
    fn read_some(&self, at: u64, left: u64, to: &mut Sink<'_>) -> Result<usize> {
        /// A constant.
        static ZEROES: [u8; PAGE_BYTES] = [0; PAGE_BYTES];
        let within = (at % PAGE) as usize;
        let len = (PAGE_BYTES - within).min(usize::try_from(left).unwrap_or(usize::MAX));
        if let Some(page) = self.existing(at / PAGE) {
            return to.put_page(&page, within, len);
        }
        match self.boot_bytes(at..at + len as u64) {
            [] => to.put(&ZEROES[..len]),
            bytes => to.put(bytes),
        }
    }

    /// Writes at `offset`, or at the end.
    pub fn write(&self, offset: Option<u64>, from: &mut Source<'_>) -> Result<Range<u64>> {
        let _writing = self.writing.lock();
        let start = offset.unwrap_or_else(|| self.size());
        let room = SIZE_MAX.saturating_sub(start);
        if room == 0 && from.remaining() > 0 {
            return Err(Error::FileTooLarge);
        }
        let mut at = start;
        while from.remaining() > 0 && at < SIZE_MAX {
            match self.write_some(at, from) {
                Ok(count) => at += count as u64,
                Err(error) if at == start => return Err(error),
                Err(_) => break,
            }
            self.size.fetch_max(at, Ordering::AcqRel);
        }
        Ok(start..at)
    }

    fn write_some(&self, at: u64, from: &mut Source<'_>) -> Result<usize> {
        let within = (at % PAGE) as usize;
        let page = self.own(at / PAGE)?;
        from.take_page(&page, within, PAGE_BYTES - within)
    }

    /// The page of this number with memory of its own.
    fn own(&self, index: u64) -> Result<Page> {
        if let Some(page) = self.existing(index) {
            return Ok(page);
        }
        self.system.charge()?;
        let page = Page::zeroed()
            .ok_or(Error::NoSpace)
            .inspect_err(|_| self.system.release(1))?;
        page.write(0, self.boot_bytes(index * PAGE..(index + 1) * PAGE));
        let mut pages = self.pages.lock();
        match pages.get(&index) {
            Some(other) => {
                self.system.release(1);
                Ok(other.clone())
            }
            None => {
                pages.insert(index, page.clone());
                self.count(&pages);
                Ok(page)
            }
        }
    }

    /// The page for a mapping.
    pub fn page(&self, index: u64, sharing: Sharing) -> Result<Page> {
        self.ready_page(index, sharing)
            .map_or_else(|| self.own(index), Ok)
    }

    /// As [`Contents::page`], if the page need not be made.
    pub fn ready_page(&self, index: u64, sharing: Sharing) -> Option<Page> {
        let in_place = || Page::of_boot_image(self.boot_bytes(index * PAGE..(index + 1) * PAGE));
        let private = sharing == Sharing::Private;
        self.existing(index)
            .or_else(|| private.then(in_place).flatten())
    }

    /// Calls `give` with those of `indices` that are ready.
    pub fn ready_pages(
        &self,
        indices: Range<u64>,
        sharing: Sharing,
        give: &mut dyn FnMut(u64, &Page),
    ) {
        if sharing == Sharing::Private && self.boot_len.load(Ordering::Acquire) != 0 {
            for index in indices {
                if let Some(page) = self.ready_page(index, sharing) {
                    give(index, &page);
                }
            }
            return;
        }
        if self.page_count() == 0 {
            return;
        }
        let pages = self.pages.lock();
        for (&index, page) in pages.range(indices) {
            give(index, page);
        }
    }

    /// Sets the size; the caller holds `writing`. Programs may still map pages that are gone.
    pub fn truncate(&self, size: u64) -> Result<()> {
        if size > SIZE_MAX {
            return Err(Error::FileTooLarge);
        }
        self.boot_len.fetch_min(size, Ordering::AcqRel);
        self.size.store(size, Ordering::Release);
        self.take_pages(size.div_ceil(PAGE)..u64::MAX, &mut |_| {});
        self.zero(size..size.next_multiple_of(PAGE));
        Ok(())
    }

    /// Gives every page of `range` memory; the caller holds `writing`.
    pub fn reserve(&self, range: Range<u64>) -> Result<()> {
        (range.start / PAGE..range.end.div_ceil(PAGE)).try_for_each(|index| {
            resched_point();
            self.own(index).map(drop)
        })
    }

    /// Makes the file at least this large; the caller holds `writing`.
    pub fn grow(&self, size: u64) {
        self.size.fetch_max(size, Ordering::AcqRel);
    }

    /// Frees `range`, which then reads as zeroes; the caller holds `writing`. `forget` gets
    /// the pages that programs may still map.
    ///
    /// The cost follows the pages that exist: a program may make a hole of exabytes.
    pub fn punch(&self, range: Range<u64>, forget: Forget<'_>) -> Result<()> {
        let end = range.end.min(self.size().next_multiple_of(PAGE));
        let boot_pages = self.boot_len.load(Ordering::Acquire).div_ceil(PAGE);
        for index in range.start / PAGE..end.div_ceil(PAGE).min(boot_pages) {
            resched_point();
            self.own(index)?;
            self.zero((index * PAGE).max(range.start)..((index + 1) * PAGE).min(end));
        }
        self.take_pages(
            range.start.div_ceil(PAGE).max(boot_pages)..end / PAGE,
            forget,
        );
        let first_edge = range.start.next_multiple_of(PAGE).min(end);
        self.zero(range.start..first_edge);
        self.zero((end / PAGE * PAGE).max(first_edge)..end);
        Ok(())
    }

    /// Frees the pages whose numbers lie in `numbers`, some at a time; `forget` gets them before.
    fn take_pages(&self, numbers: Range<u64>, forget: Forget<'_>) {
        loop {
            let batch: Vec<(u64, Page)> = {
                let mut pages = self.pages.lock();
                let taken =
                    pages.extract_if(numbers.start..numbers.end.max(numbers.start), |_, _| true);
                let batch = taken.take(BATCH_PAGES).collect();
                self.count(&pages);
                batch
            };
            if batch.is_empty() {
                return;
            }
            self.system.release(batch.len() as u64);
            forget(&batch);
            drop(batch);
            resched_point();
        }
    }

    /// Zeroes what exists of a range within one page.
    fn zero(&self, range: Range<u64>) {
        if let Some(page) = self.existing(range.start / PAGE) {
            let len = range.end.saturating_sub(range.start).min(PAGE) as usize;
            let start = (range.start % PAGE) as usize;
            page.zero(start..start + len);
        }
    }

    /// The next data or hole at or after `offset`.
    pub fn seek(&self, offset: u64, hole: bool) -> Result<u64> {
        let size = self.size();
        if offset >= size {
            return Err(Error::NoSuchDevice);
        }
        let boot_end = self.boot_len.load(Ordering::Acquire).next_multiple_of(PAGE);
        let pages = self.pages.lock();
        if !hole {
            let in_boot = (offset < boot_end).then_some(offset);
            let later = pages
                .range(offset / PAGE..)
                .next()
                .map(|(index, _)| index * PAGE);
            return in_boot
                .or(later)
                .map(|at| at.max(offset))
                .ok_or(Error::NoSuchDevice);
        }
        drop(pages);
        Ok(self.first_hole(offset.max(boot_end.min(size))).min(size))
    }

    /// The first byte from `at` on that is in no page.
    fn first_hole(&self, mut at: u64) -> u64 {
        loop {
            let pages = self.pages.lock();
            let mut count = 0;
            for (&index, _) in pages.range(at / PAGE..).take(BATCH_PAGES) {
                if index != at / PAGE {
                    return at;
                }
                at = (index + 1) * PAGE;
                count += 1;
            }
            if count < BATCH_PAGES {
                return at;
            }
            drop(pages);
            resched_point();
        }
    }
}

impl Drop for Contents {
    fn drop(&mut self) {
        self.system.release(self.page_count());
        garbage::discard(core::mem::take(self.pages.get_mut()));
    }
}
