//! The bytes of files on the disk, below their pages (`kernel_pagecache`).
//!
//! Data go between pages and the disk without the volume's lock, which is only held to ask where
//! they are. A few new blocks, and those before them, are written while it is held: that is less work than to reserve them
//! first.

use alloc::vec::Vec;
use core::ops::Range;
use core::sync::atomic::Ordering;

use base::{Instant, PAGE_BYTES};
use ext4::{Allocate, Change, DeviceError, Grown, Mapping, Run, Time};
use kernel_block::{Durability, Segment, Store};
use kernel_pagecache::{self as pagecache, Backing, Cache, Keeps};
use mach::mem::fallible::TryGrow;
use mm::Page;
use sync::{Error, Result};

use crate::node::Node;
use crate::volume::now;

pub(super) const PAGE: u64 = PAGE_BYTES as u64;
/// Bytes that one hold of the volume's lock moves.
const PIECE_BYTES: usize = 256 << 10;
/// Blocks that are written while they get their place, with those before them.
const SHORT_BLOCKS: u32 = 16;
/// Blocks of a tree that what was reserved may need when it is written.
const TREE_BLOCKS: u64 = 6;

/// The parts of pages, of which the first holds the byte `start` of a file, that are in `bytes`.
fn parts(pages: &[Page], start: u64, bytes: Range<u64>) -> Result<Vec<Segment>> {
    let mut parts = Vec::new();
    parts.make_room(most_parts(&bytes))?;
    add_parts(&mut parts, pages, start, bytes);
    Ok(parts)
}

/// The same of pages that are brought down: from the reserve, since these can be given up afterwards.
fn dirty_parts(pages: &[Page], start: u64, bytes: Range<u64>) -> Result<Vec<Segment>> {
    let mut parts = Vec::new();
    let room = parts.try_reserve_exact(most_parts(&bytes));
    room.map_err(|_| Error::OutOfMemory)?;
    add_parts(&mut parts, pages, start, bytes);
    Ok(parts)
}

fn most_parts(bytes: &Range<u64>) -> usize {
    ((bytes.end - bytes.start) / PAGE + 2) as usize
}

/// Adds them, for which there is room.
fn add_parts(parts: &mut Vec<Segment>, pages: &[Page], start: u64, bytes: Range<u64>) {
    let mut at = bytes.start;
    while at < bytes.end {
        let index = ((at - start) / PAGE) as usize;
        let Some(page) = pages.get(index) else { break };
        let end = (at / PAGE * PAGE + PAGE).min(bytes.end);
        let from = (at % PAGE) as usize;
        parts.push(Segment {
            page: page.clone(),
            bytes: from..from + (end - at) as usize,
        });
        at = end;
    }
}

impl Node {
    /// Bytes of a regular file.
    pub(super) fn bytes(&self) -> u64 {
        self.size.load(Ordering::Acquire)
    }

    pub(super) fn set_bytes(&self, size: u64) {
        self.size.store(size, Ordering::Release);
    }

    /// Blocks of so many pages.
    fn blocks(&self, pages: u64) -> u64 {
        pages * (PAGE / self.shared.block_bytes)
    }

    /// Where the block with the byte `at` is, and how many bytes lie there in one piece.
    pub(super) fn place_of(&self, at: u64) -> Result<(Mapping, u64)> {
        let each = self.shared.block_bytes;
        let block = u32::try_from(at / each).map_err(|_| Error::FileTooLarge)?;
        let run = self
            .shared
            .beside(|volume| volume.map(self.number, block))?;
        Ok((run.place, u64::from(run.len) * each))
    }

    /// Whether the blocks of these bytes are there and written, so that nothing changes by writing them again.
    fn is_written(&self, bytes: Range<u64>) -> Result<bool> {
        let mut at = bytes.start;
        while at < bytes.end {
            let (place, len) = self.place_of(at)?;
            if !matches!(place, Mapping::Written(_)) {
                return Ok(false);
            }
            at += len.max(1);
        }
        Ok(true)
    }

    /// Sets the size, on the disk and of the pages.
    pub(super) fn resize(&self, size: u64) -> Result<()> {
        if size > self.inode()?.size {
            // So that no crash shows the size without what was written before.
            pagecache::write_back(self, 0..u64::MAX)?;
        }
        pagecache::resize(self, size, || {
            let (number, shared) = (self.number, &self.shared);
            shared.with(|volume| {
                volume.truncate(number, size, now())?;
                *self.modified.lock() = None;
                Ok(())
            })?;
            if size == 0 && self.bytes() != 0 {
                self.is_emptied.store(true, Ordering::Release);
            }
            self.set_bytes(size);
            Ok(())
        })
    }

    /// Brings all its pages down, and the time of their change.
    pub(super) fn bring_down(&self) -> Result<()> {
        self.is_listed.store(false, Ordering::Release);
        let brought = pagecache::write_back(self, 0..u64::MAX);
        if self.cache.is_dirty() {
            self.is_listed.store(true, Ordering::Release);
        }
        if self.modified.lock().is_some() {
            self.shared.beside(|volume| {
                let modified = *self.modified.lock();
                if let Some(time) = modified {
                    let change = Change {
                        modified,
                        ..Change::default()
                    };
                    volume.change(self.number, &change, time)?;
                }
                self.forget_modified(modified);
                Ok(())
            })?;
        }
        brought
    }

    /// The disk knows when it was changed, unless it was changed again.
    fn forget_modified(&self, known: Option<Time>) {
        let mut modified = self.modified.lock();
        if *modified == known {
            *modified = None;
        }
    }

    /// Brings down the beginning of `bytes`, which are whole blocks in pages from the byte `start`
    /// on; returns how many bytes.
    fn bring_some(&self, pages: &[Page], start: u64, bytes: Range<u64>, size: u64) -> Result<u64> {
        let each = self.shared.block_bytes;
        let block_at = |at: u64| u32::try_from(at / each).map_err(|_| Error::FileTooLarge);
        let blocks = block_at(bytes.start)?..block_at(bytes.end)?;
        let number = self.number;
        // Asked for with the volume's lock held, so that no time that a program has set since is undone.
        let grown = |end: u64| Grown {
            size: size.min(end),
            modified: *self.modified.lock(),
        };
        let parts = dirty_parts(pages, start, bytes.clone())?;
        let store = &self.shared.store;
        let write = |block: u64, part: Range<u32>| {
            let bytes_of = |block: u32| block as usize * each as usize;
            write_some(
                store,
                block * each,
                &parts,
                bytes_of(part.start)..bytes_of(part.end),
            )
        };
        // The volume only hears that the disk failed.
        let mut failed = None;
        let placed = self.shared.beside(|volume| {
            let (grown, all) = (grown(bytes.end), blocks.clone());
            let new = volume.write_new(number, all, SHORT_BLOCKS, grown, &mut |block, part| {
                write(block, part).map_err(|error| {
                    failed = Some(error);
                    DeviceError
                })
            })?;
            match new {
                Some(len) => {
                    self.forget_modified(grown.modified);
                    Ok(Brought::Wholly(len))
                }
                None => volume.place(number, blocks.clone()).map(Brought::Placed),
            }
        });
        let run = match placed.map_err(|error| failed.unwrap_or(error))? {
            Brought::Wholly(len) => return Ok(u64::from(len) * each),
            Brought::Placed(run) => run,
        };
        let len = u64::from(run.len) * each;
        if let Mapping::Written(block) | Mapping::Unwritten(block) = run.place {
            write(block, 0..run.len)?;
            self.shared.beside(|volume| {
                let grown = grown(bytes.start + len);
                volume.settle(number, &run, grown)?;
                self.forget_modified(grown.modified);
                Ok(())
            })?;
        }
        Ok(len)
    }

    /// fallocate(2).
    pub(super) fn reserve(&self, range: Range<u64>, how: Allocate) -> Result<()> {
        if how == Allocate::PunchHole {
            // So that no crash shows the size without what was written before.
            pagecache::write_back(self, 0..u64::MAX)?;
        }
        self.cache.alone(|| {
            let (number, bytes) = (self.number, range.clone());
            let size = self.bytes().min(range.end);
            self.shared.with(|volume| {
                // A page that is in the hole brings its bytes down no more, nor the size that they made.
                if how == Allocate::PunchHole && volume.inode(number)?.size < size {
                    volume.truncate(number, size, now())?;
                }
                volume.fallocate(number, bytes, how, now())
            })?;
            match how {
                Allocate::Extend => self.set_bytes(self.bytes().max(range.end)),
                Allocate::KeepSize => {}
                Allocate::PunchHole | Allocate::ZeroRange => pagecache::zero(self, range),
            }
            Ok(())
        })
    }
}

/// What has become of the beginning of some blocks that are brought down.
enum Brought {
    /// So many are on the disk.
    Wholly(u32),
    /// These have their place, where they are still to be written.
    Placed(Run),
}

/// Writes these bytes of parts of pages to `offset` of the disk.
fn write_some(store: &Store, offset: u64, parts: &[Segment], bytes: Range<usize>) -> Result<()> {
    let all: usize = parts.iter().map(|part| part.bytes.len()).sum();
    if bytes == (0..all) {
        return store.write_pages(offset, parts, Durability::Volatile);
    }
    let mut some = Vec::new();
    let room = some.try_reserve_exact(parts.len());
    room.map_err(|_| Error::OutOfMemory)?;
    let mut passed = 0;
    for part in parts {
        let end = passed + part.bytes.len();
        let (from, to) = (bytes.start.max(passed), bytes.end.min(end));
        if from < to {
            let first = part.bytes.start;
            some.push(Segment {
                page: part.page.clone(),
                bytes: first + from - passed..first + to - passed,
            });
        }
        passed = end;
    }
    store.write_pages(offset, &some, Durability::Volatile)
}

impl Backing for Node {
    fn cache(&self) -> &Cache {
        &self.cache
    }

    fn keeps(&self) -> Keeps {
        Keeps::All
    }

    fn size(&self) -> Result<u64> {
        Ok(self.bytes())
    }

    fn piece_bytes(&self) -> usize {
        PIECE_BYTES
    }

    fn fill(&self, first: u64, pages: &[Page]) -> Result<bool> {
        let start = first * PAGE;
        let end = start + pages.len() as u64 * PAGE;
        let data_end = self.bytes().min(end);
        let mut at = start;
        let mut has_room = end <= data_end.next_multiple_of(self.shared.block_bytes);
        while at < end {
            let (place, len) = match at < data_end {
                true => self.place_of(at)?,
                false => (Mapping::Hole, end - at),
            };
            let until = (at + len).min(end);
            let parts = parts(pages, start, at..until)?;
            match place {
                Mapping::Written(block) => {
                    let offset = block * self.shared.block_bytes;
                    self.shared.store.read_pages(offset, &parts)?;
                }
                Mapping::Unwritten(_) | Mapping::Hole => {
                    has_room &= place != Mapping::Hole;
                    parts
                        .into_iter()
                        .for_each(|part| part.page.zero(part.bytes));
                }
            }
            at = until;
        }
        // Images of others may have something there.
        for part in parts(pages, start, data_end.max(start)..end)? {
            part.page.zero(part.bytes);
        }
        Ok(has_room)
    }

    fn fetch(&self, offset: u64, into: &mut [u8]) -> Result<usize> {
        self.shared
            .beside(|volume| volume.read(self.number, offset, into))
    }

    fn store(&self, offset: u64, data: &[u8]) -> Result<usize> {
        self.shared
            .with(|volume| volume.write(self.number, offset, data, now()))
    }

    fn bring(&self, first: u64, pages: &[Page], size: u64) -> Result<u64> {
        let start = first * PAGE;
        let each = self.shared.block_bytes;
        let end = size
            .next_multiple_of(each)
            .min(start + pages.len() as u64 * PAGE);
        let mut at = start;
        while at < end {
            at += self.bring_some(pages, start, at..end, size)?;
        }
        Ok(end.saturating_sub(start) / PAGE)
    }

    fn promise(&self, pages: u64) -> bool {
        let is_writable = self.shared.is_writable.load(Ordering::Acquire);
        is_writable && self.shared.promises.promise(self.blocks(pages))
    }

    fn release(&self, pages: u64) {
        self.shared.promises.release(self.blocks(pages));
    }

    fn settle_promises(&self) {
        // What fails is heard of by who has that file open.
        let _ = self.shared.bring_down(Instant::NEVER);
        let _ = pagecache::write_back(self, 0..u64::MAX);
    }

    fn reserve_page(&self, page: u64) -> Result<()> {
        let bytes = page * PAGE..page * PAGE + PAGE;
        if self.is_written(bytes.clone())? {
            return Ok(());
        }
        if self.shared.promises.unpromised() < self.blocks(1) + TREE_BLOCKS {
            return Err(Error::NoSpace);
        }
        self.shared
            .with(|volume| volume.fallocate(self.number, bytes, Allocate::KeepSize, now()))
    }

    fn grow(&self, end: u64) {
        self.size.fetch_max(end, Ordering::AcqRel);
    }

    fn changed(&self) {
        *self.modified.lock() = Some(now());
        if !self.is_listed.load(Ordering::Acquire) {
            self.shared.list(self);
        }
    }
}
