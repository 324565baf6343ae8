//! O_DIRECT: the program's pages are told to the device, without a copy.
//!
//! What the device reads is a page as it is: who stores to it meanwhile has himself to blame, and a
//! fork leaves it alone. What the device writes is pinned (`mm::space`): private anonymous memory
//! that stays the program's through forks. Other memory (of files, of devices), memory that does not begin
//! at a sector's size, and pieces of an I/O vector that hold no whole blocks go through pages
//! of the kernel's, as buffered transfers do.

use alloc::vec::Vec;

use base::PAGE_BYTES;
use block::{Durability, Operation, SECTOR_BYTES};
use mach::mem::fallible::TryGrow;
use mm::io::{Sink, Source, UserRange};
use mm::user;
use sync::{Error, Result};

use crate::buffered;
use crate::disk::Disk;
use crate::transfer::{Segment, bytes_of, move_pages};

/// Bytes that one request moves.
const REQUEST_BYTES: u64 = 1 << 20;

/// Reads at most `len` bytes, whole blocks, from the byte `at` of the disk on; returns how many.
pub(crate) fn read(disk: &Disk, at: u64, len: u64, to: &mut Sink<'_>) -> Result<usize> {
    let len = len.min(REQUEST_BYTES);
    let block = disk.limits().block_bytes as usize;
    let Some(range) = to.next_range().filter(|range| is_fit(range, block)) else {
        return buffered::read(disk, at, len, to);
    };
    let len = range.len.min(len as usize) / block * block;
    let pages = match user::space().pin(range.start, len as u64) {
        // Memory of another kind, or none at all, which the copy finds.
        Err(Error::BadAddress) => return buffered::read(disk, at, len as u64, to),
        pages => pages?,
    };
    let mut segments = Vec::new();
    segments.make_room(pages.len())?;
    let (mut left, mut start) = (len, range.start.page_offset());
    for page in pages {
        let end = (start + left).min(PAGE_BYTES);
        left -= end - start;
        segments.push(Segment {
            page,
            bytes: start..end,
        });
        start = 0;
    }
    move_pages(disk, Operation::Read, at / SECTOR_BYTES, &segments)?;
    to.skip(len);
    Ok(len)
}

/// Whether the memory holds a whole block that a device may be told of.
fn is_fit(range: &UserRange, block: usize) -> bool {
    range.start.0.is_multiple_of(SECTOR_BYTES) && range.len >= block
}

/// Writes at most `len` bytes, whole blocks, from the byte `at` of the disk on; returns how many.
pub(crate) fn write(
    disk: &Disk,
    (at, len): (u64, u64),
    durability: Durability,
    from: &mut Source<'_>,
) -> Result<usize> {
    let len = len.min(REQUEST_BYTES);
    let block = disk.limits().block_bytes as usize;
    let before = from.done();
    let segments = gather(from, len as usize)?;
    // What is over is no whole block.
    let over = bytes_of(&segments) % block;
    if segments.is_empty() || over != 0 {
        from.rewind(from.done() - before);
        return buffered::write(disk, (at, len), durability, from);
    }
    let operation = Operation::Write(durability);
    let written = move_pages(disk, operation, at / SECTOR_BYTES, &segments);
    if written.is_err() {
        from.rewind(from.done() - before);
    }
    written.map(|()| bytes_of(&segments))
}

/// The program's pages with the next `len` bytes, as far as they can be told to a device.
fn gather(from: &mut Source<'_>, len: usize) -> Result<Vec<Segment>> {
    let mut segments = Vec::new();
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
        segments.make_room(1)?;
        from.skip(part.len());
        left -= part.len();
        segments.push(Segment { page, bytes: part });
    }
    Ok(segments)
}
