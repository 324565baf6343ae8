//! Transfers by way of pages of the kernel's: any bytes, to and from anywhere.
//!
//! A stretch of blocks that holds the bytes is read into fresh pages, or filled and
//! written. A write whose first or last block is not whole reads the stretch first. All of it is done
//! under the disk's `buffered`: of two writes into one block none is lost.

use alloc::vec::Vec;

use base::PAGE_BYTES;
use block::{Durability, Operation, SECTOR_BYTES};
use mach::mem::Page;
use mach::mem::fallible::TryGrow;
use mm::io::{Sink, Source};
use sync::{Error, Result};

use crate::disk::Disk;
use crate::transfer::{Segment, move_pages};

/// Bytes of one stretch.
const STRETCH_BYTES: u64 = 128 << 10;

/// Whole blocks around some bytes.
struct Stretch {
    /// Where the blocks begin, in bytes of the disk.
    start: u64,
    segments: Vec<Segment>,
    /// How far into the blocks the bytes begin, and how many they are.
    skip: usize,
    len: usize,
    is_whole: bool,
}

impl Stretch {
    /// Around the bytes from `at` on, at most `most`.
    fn around(disk: &Disk, at: u64, most: u64) -> Result<Self> {
        let block = u64::from(disk.limits().block_bytes);
        let start = at / block * block;
        let len = most.min(STRETCH_BYTES - (at - start));
        let bytes = (at - start + len).next_multiple_of(block) as usize;
        let mut segments = Vec::new();
        segments.make_room(bytes.div_ceil(PAGE_BYTES))?;
        let mut left = bytes;
        while left != 0 {
            let part = left.min(PAGE_BYTES);
            segments.push(Segment {
                page: Page::alloc().ok_or(Error::OutOfMemory)?,
                bytes: 0..part,
            });
            left -= part;
        }
        Ok(Self {
            start,
            segments,
            skip: (at - start) as usize,
            len: len as usize,
            is_whole: at == start && len as usize == bytes,
        })
    }

    fn sector(&self) -> u64 {
        self.start / SECTOR_BYTES
    }

    fn read(&self, disk: &Disk) -> Result<()> {
        move_pages(disk, Operation::Read, self.sector(), &self.segments)
    }

    /// Each page with the bytes of it that are meant.
    fn pieces(&self) -> impl Iterator<Item = (&Page, usize, usize)> {
        let (from, until) = (self.skip, self.skip + self.len);
        let places = self.segments.iter().enumerate();
        places.filter_map(move |(index, segment)| {
            let start = index * PAGE_BYTES;
            let first = from.saturating_sub(start);
            let end = until.saturating_sub(start).min(segment.bytes.end);
            (first < end).then(|| (&segment.page, first, end - first))
        })
    }
}

/// Reads at most `len` bytes from the byte `at` of the disk on; returns how many.
pub(crate) fn read(disk: &Disk, at: u64, len: u64, to: &mut Sink<'_>) -> Result<usize> {
    let stretch = Stretch::around(disk, at, len)?;
    stretch.read(disk)?;
    let mut done = 0;
    for (page, first, len) in stretch.pieces() {
        match to.put_page(page, first, len) {
            Ok(count) => done += count,
            Err(error) => return mm::io::partial(done, error),
        }
    }
    Ok(done)
}

/// Writes at most `len` bytes from the byte `at` of the disk on; returns how many.
///
/// Errors: `BadAddress` if the program has not all of them; then nothing is written.
pub(crate) fn write(
    disk: &Disk,
    (at, len): (u64, u64),
    durability: Durability,
    from: &mut Source<'_>,
) -> Result<usize> {
    let stretch = Stretch::around(disk, at, len)?;
    let _alone = disk.buffered.lock();
    if !stretch.is_whole {
        stretch.read(disk)?;
    }
    let before = from.done();
    for (page, first, len) in stretch.pieces() {
        if from.take_page(page, first, len)? < len {
            from.rewind(from.done() - before);
            return Err(Error::BadAddress);
        }
    }
    let operation = Operation::Write(durability);
    let written = move_pages(disk, operation, stretch.sector(), &stretch.segments);
    if written.is_err() {
        from.rewind(from.done() - before);
    }
    written.map(|()| stretch.len)
}
