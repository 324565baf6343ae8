//! O_DIRECT: the program's pages are told to the device, without a copy.
//!
//! What the device reads is a page as it is: who stores to it meanwhile has himself to blame, and a
//! fork leaves it alone. What the device writes is pinned (`mm::space`): private anonymous memory
//! that stays the program's through forks. Other memory (of files, of devices), memory that does not begin
//! at a sector's size, pieces of an I/O vector that hold no whole blocks, and memory that a device behind
//! an IOMMU would have to be shown, go through pages of the kernel's, as buffered transfers do.
//!
//! An I/O vector is one request, as far as 1 MiB reaches.

use alloc::boxed::Box;
use alloc::sync::Arc;
use core::ops::Range;

use base::{PAGE_BYTES, VirtAddr};
use block::{Durability, Operation, SECTOR_BYTES, SectorRange};
use mm::io::{Sink, Source, UserRange};
use mm::{Access, user};
use sync::{Error, Result};
use vfs::file::transfer::{Memory, Transfer};

use crate::bio::{Bio, End, PIECES_MAX};
use crate::buffered;
use crate::disk::Disk;
use crate::failure::settle;
use crate::partition::Partition;

/// Bytes that one request moves.
const REQUEST_BYTES: u64 = 1 << 20;

/// Reads at most `len` bytes, whole blocks, from the byte `at` of the disk on; returns how many.
pub(crate) fn read(disk: &Disk, at: u64, len: u64, to: &mut Sink<'_>) -> Result<usize> {
    match move_ranges(disk, Operation::Read, at, len, to.ranges())? {
        0 => buffered::read(disk, at, len.min(REQUEST_BYTES), to),
        done => {
            to.skip(done);
            Ok(done)
        }
    }
}

/// Writes at most `len` bytes, whole blocks, from the byte `at` of the disk on; returns how many.
pub(crate) fn write(
    disk: &Disk,
    (at, len): (u64, u64),
    durability: Durability,
    from: &mut Source<'_>,
) -> Result<usize> {
    match move_ranges(disk, Operation::Write(durability), at, len, from.ranges())? {
        0 => buffered::write(disk, (at, len.min(REQUEST_BYTES)), durability, from),
        done => {
            from.skip(done);
            Ok(done)
        }
    }
}

/// Moves the first of the ranges, as far as they can be told to the device; how many bytes.
fn move_ranges(
    disk: &Disk,
    operation: Operation,
    at: u64,
    len: u64,
    ranges: impl Iterator<Item = UserRange>,
) -> Result<usize> {
    let mut bio = disk.bio()?;
    let len = len.min(REQUEST_BYTES) as usize;
    let bytes = gather(&mut bio, operation, len, ranges)?;
    if bytes == 0 || !bytes.is_multiple_of(disk.block_bytes() as usize) {
        disk.give(bio);
        return Ok(0);
    }
    let (result, bio) = disk.run(operation, sectors(at, bytes), bio);
    disk.give(bio);
    settle(result).map(|()| bytes)
}

fn sectors(at: u64, bytes: usize) -> SectorRange {
    SectorRange {
        first: at / SECTOR_BYTES,
        count: bytes as u64 / SECTOR_BYTES,
    }
}

/// Puts the program's pages with the next `len` bytes into the request, as far as they can be told to a
/// device; how many bytes.
fn gather(
    bio: &mut Bio,
    operation: Operation,
    len: usize,
    ranges: impl Iterator<Item = UserRange>,
) -> Result<usize> {
    let access = match operation {
        Operation::Read => Access::Write,
        _ => Access::Read,
    };
    let (mut done, mut pieces) = (0, 0);
    for range in ranges {
        let part = UserRange {
            len: range.len.min(len - done),
            ..range
        };
        if part.len == 0 {
            continue;
        }
        let pages = (part.start.page_offset() + part.len).div_ceil(PAGE_BYTES);
        pieces += pages;
        let is_fit = [part.start.0, part.len as u64]
            .iter()
            .all(|number| number.is_multiple_of(SECTOR_BYTES));
        if !is_fit || pieces > PIECES_MAX {
            break;
        }
        bio.reserve(pages)?;
        let before = bio.pieces();
        if !add(bio, access, part)? {
            bio.cut_to(before);
            break;
        }
        done += part.len;
        if done == len {
            break;
        }
    }
    Ok(done)
}

/// Adds the pages of a range, for which there is room; false if they cannot be told to a device: then some
/// may be there.
fn add(bio: &mut Bio, access: Access, range: UserRange) -> Result<bool> {
    let mut rest = Rest {
        bio,
        at: range.start.page_offset(),
        left: range.len,
        is_fit: true,
    };
    let space = user::space();
    space.pages_at_hand(range.start, range.len as u64, access, &mut |page| {
        rest.push(page);
    });
    if rest.left == 0 || !rest.is_fit {
        return Ok(rest.is_fit);
    }
    let done = (range.len - rest.left) as u64;
    let start = range.start + done;
    match access {
        Access::Write => match space.pin(start, rest.left as u64) {
            // Memory of another kind, or none at all, which the copy finds.
            Err(Error::BadAddress) => return Ok(false),
            pages => pages?.into_iter().for_each(|page| rest.push(page)),
        },
        _ => {
            let mut at = start;
            while rest.left != 0 && rest.is_fit {
                match user::page(at) {
                    Ok(Some(page)) => rest.push(page),
                    _ => return Ok(false),
                }
                at = VirtAddr(at.page_floor().0 + PAGE_BYTES as u64);
            }
        }
    }
    Ok(rest.left == 0 && rest.is_fit)
}

/// What is still to be added of some bytes that follow each other.
struct Rest<'a> {
    bio: &'a mut Bio,
    /// Where in the next page they go on.
    at: usize,
    left: usize,
    is_fit: bool,
}

impl Rest<'_> {
    fn push(&mut self, page: mach::mem::Page) {
        let end = (self.at + self.left).min(PAGE_BYTES);
        self.left -= end - self.at;
        self.is_fit &= self.bio.push(page, self.at..end);
        self.at = 0;
    }
}

/// Begins a transfer of whole blocks at the byte `at` of the disk, where it has as many as are asked
/// for; `None` if it has to be waited for.
pub(crate) fn begin(
    disk: &Disk,
    partition: Option<&Arc<Partition>>,
    at: u64,
    transfer: Transfer<'_>,
    durability: Durability,
) -> Option<Result<()>> {
    let operation = match transfer.is_write {
        true => Operation::Write(durability),
        false => Operation::Read,
    };
    let mut bio = disk.bio().ok()?;
    let bytes = match fill(&mut bio, operation, &transfer.memory) {
        Ok(bytes) if bytes != 0 => bytes,
        // To wait for it may do; and if not, that says why.
        _ => {
            disk.give(bio);
            return None;
        }
    };
    bio.end = End::Told(transfer.end, transfer.tag, bytes);
    if let Some(partition) = partition {
        partition.begin(mach::time::now());
        bio.partition = Some(partition.clone());
    }
    match disk.begin(operation, sectors(at, bytes), bio) {
        Ok(()) => Some(Ok(())),
        Err(bio) => {
            if let Some(partition) = partition {
                partition.forget();
            }
            disk.give(bio);
            None
        }
    }
}

/// Puts all of the memory into the request; how many bytes, or 0 if it cannot be told to a device.
fn fill(bio: &mut Box<Bio>, operation: Operation, memory: &Memory<'_>) -> Result<usize> {
    match memory {
        Memory::Ranges(ranges) => {
            let len: usize = ranges.iter().map(|range| range.len).sum();
            if len > REQUEST_BYTES as usize {
                return Ok(0);
            }
            let done = gather(bio, operation, len, ranges.iter().copied())?;
            Ok(if done == len { len } else { 0 })
        }
        Memory::Pages(pages, bytes) => {
            let whole = add_pinned(bio, pages, bytes.clone())?;
            Ok(if whole { bytes.len() } else { 0 })
        }
    }
}

fn add_pinned(bio: &mut Bio, pages: &[mach::mem::Page], bytes: Range<usize>) -> Result<bool> {
    let is_fit = [bytes.start, bytes.len()]
        .iter()
        .all(|number| (*number as u64).is_multiple_of(SECTOR_BYTES));
    let count = bytes.end.div_ceil(PAGE_BYTES) - bytes.start / PAGE_BYTES;
    if !is_fit || count > PIECES_MAX || bytes.len() > REQUEST_BYTES as usize {
        return Ok(false);
    }
    bio.reserve(count)?;
    let mut rest = Rest {
        bio,
        at: bytes.start % PAGE_BYTES,
        left: bytes.len(),
        is_fit: true,
    };
    let pages = pages.iter().skip(bytes.start / PAGE_BYTES).take(count);
    pages.for_each(|page| rest.push(page.clone()));
    Ok(rest.left == 0 && rest.is_fit)
}
