//! O_DIRECT: between the program's own pages and the disk, coherent with the pages that are kept.
//!
//! The program's pages are found before anything is locked: they may have to be brought in. What is
//! dirty in the range is brought down first. Memory that a device cannot be told of, and what
//! there is too little room for, goes by way of pages, as if nobody had asked.

use alloc::vec::Vec;
use core::ops::Range;

use base::{PAGE_BYTES, PhysAddr};
use ext4::{Grown, Mapping};
use kernel_block::{Durability, Segment};
use kernel_pagecache as pagecache;
use mach::mem::fallible::TryGrow;
use mm::io::{Sink, Source, partial};
use mm::{Page, user};
use sync::{Error, Result};

use crate::data::PAGE;
use crate::node::Node;
use crate::volume::now;

/// Bytes of one step.
const STEP_BYTES: usize = 1 << 20;

fn bytes_of(parts: &[Segment]) -> u64 {
    parts.iter().map(|part| part.bytes.len() as u64).sum()
}

/// Sizes at which memory has to begin.
const SECTOR_BYTES: u64 = 512;

/// The program's pages that take the next bytes, at most `most` of them and whole sectors, which stay
/// the program's; `None` for memory of another kind, or none at all, which a copy finds.
fn pinned(to: &Sink<'_>, most: usize, sector: usize) -> Result<Option<Vec<Segment>>> {
    let range = to.ranges().find(|range| range.len != 0);
    let is_fit = |start: u64, len: usize| start.is_multiple_of(SECTOR_BYTES) && len >= sector;
    let Some(range) = range.filter(|range| is_fit(range.start.0, range.len)) else {
        return Ok(None);
    };
    let len = range.len.min(most) / sector * sector;
    let pages = match user::space().pin(range.start, len as u64) {
        Err(Error::BadAddress) => return Ok(None),
        pages => pages?,
    };
    let mut parts = Vec::new();
    parts.make_room(pages.len())?;
    let (mut left, mut start) = (len, range.start.page_offset());
    for page in pages {
        let end = (start + left).min(PAGE_BYTES);
        left -= end - start;
        parts.push(Segment {
            page,
            bytes: start..end,
        });
        start = 0;
    }
    Ok(Some(parts))
}

/// The program's pages with the next `len` bytes, as far as they can be told to a device; these count
/// as given.
fn lendable(from: &mut Source<'_>, len: usize) -> Result<Vec<Segment>> {
    let mut parts = Vec::new();
    let mut left = len;
    while left != 0 {
        let Ok(Some((page, bytes))) = from.next_page() else {
            break;
        };
        let end = bytes.end.min(bytes.start + left);
        let part = bytes.start..end;
        if part.is_empty() || !(part.start as u64).is_multiple_of(SECTOR_BYTES) {
            break;
        }
        parts.make_room(1)?;
        from.skip(part.len());
        left -= part.len();
        parts.push(Segment { page, bytes: part });
    }
    Ok(parts)
}

/// The bytes `range` of parts of pages.
fn slice(parts: &[Segment], range: Range<u64>) -> Result<Vec<Segment>> {
    let mut some = Vec::new();
    some.make_room(parts.len())?;
    let mut passed = 0;
    for part in parts {
        let end = passed + part.bytes.len() as u64;
        let (from, until) = (range.start.max(passed), range.end.min(end));
        if from < until {
            let first = part.bytes.start + (from - passed) as usize;
            some.push(Segment {
                page: part.page.clone(),
                bytes: first..first + (until - from) as usize,
            });
        }
        passed = end;
    }
    Ok(some)
}

impl Node {
    /// Whether a direct transfer may be of these bytes.
    pub(super) fn check_direct(&self, offset: u64, len: usize) -> Result<()> {
        let sector = self.shared.store.sector_bytes();
        match offset.is_multiple_of(sector) && (len as u64).is_multiple_of(sector) {
            true => Ok(()),
            false => Err(Error::Invalid),
        }
    }

    /// read(2) from the disk to the program's pages.
    pub(super) fn read_direct(&self, offset: u64, to: &mut Sink<'_>) -> Result<usize> {
        self.check_direct(offset, to.remaining())?;
        let (start, sector) = (to.done(), self.shared.store.sector_bytes());
        while to.remaining() > 0 {
            let at = offset + (to.done() - start) as u64;
            let step = self.read_step(at, sector, to);
            match step {
                Ok(0) => break,
                Ok(_) => {}
                Err(error) => return partial(to.done() - start, error),
            }
        }
        Ok(to.done() - start)
    }

    fn read_step(&self, at: u64, sector: u64, to: &mut Sink<'_>) -> Result<usize> {
        let left = self.bytes().saturating_sub(at);
        if left == 0 {
            return Ok(0);
        }
        let most = left.next_multiple_of(sector).min(STEP_BYTES as u64) as usize;
        let Some(parts) = pinned(to, most, sector as usize)? else {
            return pagecache::read_at(self, at, to);
        };
        let bytes = at..at + bytes_of(&parts);
        pagecache::write_back(self, bytes.clone())?;
        self.cache
            .unmoved(|| self.read_parts(&parts, bytes.clone()))?;
        let count = left.min(bytes.end - at) as usize;
        to.skip(count);
        Ok(count)
    }

    fn read_parts(&self, parts: &[Segment], bytes: Range<u64>) -> Result<()> {
        let each = self.shared.block_bytes;
        let mut at = bytes.start;
        while at < bytes.end {
            let (place, len) = self.place_of(at)?;
            let within = at % each;
            let until = bytes.end.min(at + len - within);
            let some = slice(parts, at - bytes.start..until - bytes.start)?;
            match place {
                Mapping::Written(block) => {
                    let offset = block * each + within;
                    self.shared.store.read_pages(offset, &some)?;
                }
                _ => some.into_iter().for_each(|part| part.page.zero(part.bytes)),
            }
            at = until;
        }
        Ok(())
    }

    /// write(2) from the program's pages to the disk; `None` where that does not go.
    pub(super) fn write_direct(&self, offset: u64, from: &mut Source<'_>) -> Result<Option<usize>> {
        self.check_direct(offset, from.remaining())?;
        let each = self.shared.block_bytes;
        let before = from.done();
        while from.remaining() > 0 {
            let done = from.done() - before;
            let at = offset + done as u64;
            let mark = from.done();
            let parts = lendable(from, from.remaining().min(STEP_BYTES));
            let written = parts.and_then(|parts| {
                let len = bytes_of(&parts);
                // Half a block would have to be read first, which pages do.
                match len != 0 && at.is_multiple_of(each) && len.is_multiple_of(each) {
                    true => self.write_step(at..at + len, &parts),
                    false => Ok(0),
                }
            });
            from.rewind(from.done() - mark - *written.as_ref().unwrap_or(&0));
            match written {
                Ok(0) if done == 0 => return Ok(None),
                Ok(0) => return Ok(Some(done)),
                Ok(_) => {}
                Err(error) => return partial(done, error).map(Some),
            }
        }
        Ok(Some(from.done() - before))
    }

    /// Writes whole blocks; how many bytes, none where there may be no room, or where the bytes are the file's own here:
    /// a page that is shown would be the next one's source.
    fn write_step(&self, bytes: Range<u64>, parts: &[Segment]) -> Result<usize> {
        let pages = (bytes.end - bytes.start).div_ceil(PAGE);
        if !pagecache::Backing::promise(self, pages) {
            return Ok(0);
        }
        let written = pagecache::write_back(self, bytes.clone()).and_then(|()| {
            self.cache.alone(|| {
                if self.keeps_any(parts, &bytes)? {
                    return Ok(0);
                }
                let mut end = bytes.start;
                let written = self.write_parts(parts, bytes.clone(), &mut end);
                let done = (end - bytes.start) as usize;
                // Whole pieces that are on the disk show, whatever became of the rest.
                if done != 0 {
                    pagecache::Backing::grow(self, end);
                    self.show(parts, bytes.start..end);
                }
                written.map_or_else(|error| partial(done, error), |()| Ok(done))
            })
        });
        pagecache::Backing::release(self, pages);
        written
    }

    /// Whether a part lies in a page that is kept of these bytes.
    fn keeps_any(&self, parts: &[Segment], bytes: &Range<u64>) -> Result<bool> {
        let mut kept: Vec<PhysAddr> = Vec::new();
        for index in bytes.start / PAGE..bytes.end.div_ceil(PAGE) {
            if let Some(page) = pagecache::ready_page(&self.cache, index) {
                kept.make_room(1)?;
                kept.push(page.phys());
            }
        }
        kept.sort_unstable();
        let is_kept = |part: &Segment| kept.binary_search(&part.page.phys()).is_ok();
        Ok(parts.iter().any(is_kept))
    }

    /// Writes one piece of the disk after the other; `at` says how far.
    fn write_parts(&self, parts: &[Segment], bytes: Range<u64>, at: &mut u64) -> Result<()> {
        let each = self.shared.block_bytes;
        let block_at = |at: u64| u32::try_from(at / each).map_err(|_| Error::FileTooLarge);
        let number = self.number;
        while *at < bytes.end {
            let blocks = block_at(*at)?..block_at(bytes.end)?;
            let run = self
                .shared
                .beside(|volume| volume.place(number, blocks.clone()))?;
            let (Mapping::Written(block) | Mapping::Unwritten(block)) = run.place else {
                return Err(Error::Io);
            };
            let until = *at + u64::from(run.len) * each;
            let some = slice(parts, *at - bytes.start..until - bytes.start)?;
            let store = &self.shared.store;
            store.write_pages(block * each, &some, Durability::Volatile)?;
            self.shared.beside(|volume| {
                let grown = Grown {
                    size: until,
                    modified: Some(now()),
                };
                volume.settle(number, &run, grown)?;
                // That of an earlier write(2).
                *self.modified.lock() = None;
                Ok(())
            })?;
            *at = until;
        }
        Ok(())
    }

    /// Pages that are kept get what the disk has now of these bytes, with which the parts begin.
    fn show(&self, parts: &[Segment], bytes: Range<u64>) {
        let mut at = bytes.start;
        for part in parts {
            let end = bytes.end.min(at + part.bytes.len() as u64);
            self.show_part(part, at..end);
            at = end;
        }
    }

    fn show_part(&self, part: &Segment, bytes: Range<u64>) {
        let mut at = bytes.start;
        while at < bytes.end {
            let end = bytes.end.min((at / PAGE + 1) * PAGE);
            if let Some(page) = pagecache::ready_page(&self.cache, at / PAGE) {
                let first = part.bytes.start + (at - bytes.start) as usize;
                let len = (end - at) as usize;
                copy(&part.page, first..first + len, &page, (at % PAGE) as usize);
            }
            at = end;
        }
    }
}

/// Copies bytes of a page to `at` in another page.
fn copy(from: &Page, bytes: Range<usize>, to: &Page, at: usize) {
    let mut piece = [0; 256];
    let mut done = 0;
    while done < bytes.len() {
        let len = (bytes.len() - done).min(piece.len());
        let some = piece.get_mut(..len).unwrap_or(&mut []);
        from.read(bytes.start + done, some);
        to.write(at + done, some);
        done += len;
    }
}
