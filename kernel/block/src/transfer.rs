//! Pages to and from a disk.
//!
//! A device that reaches all memory is told the pages themselves. Where an IOMMU translates, a page
//! would have to be mapped for the time of a request and forgotten afterwards, which costs more
//! than a copy (`mach::mem::Pinned`): there the bytes pass through memory of the device's.

use alloc::boxed::Box;
use core::ops::Range;

use base::{Instant, PAGE_BYTES};
use block::{Operation, SECTOR_BYTES, SectorRange};
use hal::{DmaBuf, DmaRequest, DmaSource, HasDeviceAddr};
use mach::mem::Page;
use sync::{Error, Result};

use crate::bio::{Bio, Ended};
use crate::disk::Disk;
use crate::failure::settle;

/// Bytes of a copy, which lie together.
const COPY_BYTES: usize = 64 << 10;

/// Some bytes of a page.
pub struct Segment {
    /// The page.
    pub page: Page,
    /// Which of its bytes.
    pub bytes: Range<usize>,
}

/// Bytes in all of them.
pub(crate) fn bytes_of(segments: &[Segment]) -> usize {
    segments.iter().map(|segment| segment.bytes.len()).sum()
}

/// Reads whole blocks from the sector `first` on into pages, or writes them.
pub(crate) fn move_pages(
    disk: &Disk,
    operation: Operation,
    first: u64,
    segments: &[Segment],
) -> Result<()> {
    move_pages_by(disk, operation, first, segments, &mut |sectors, bio| {
        Some(disk.run(operation, sectors, bio))
    })
}

/// The same at boot, where no thread can sleep yet, until then.
pub(crate) fn read_pages_at_boot(
    disk: &Disk,
    first: u64,
    segments: &[Segment],
    until: Instant,
) -> Result<()> {
    let operation = Operation::Read;
    move_pages_by(disk, operation, first, segments, &mut |sectors, bio| {
        disk.run_at_boot(operation, sectors, bio, until)
    })
}

/// Sends a request and sees to its end; `None` if that did not come.
type Run<'a> = &'a mut dyn FnMut(SectorRange, Box<Bio>) -> Option<Ended>;

fn move_pages_by(
    disk: &Disk,
    operation: Operation,
    first: u64,
    segments: &[Segment],
    run: Run<'_>,
) -> Result<()> {
    let count = bytes_of(segments) as u64 / SECTOR_BYTES;
    let mut bio = disk.bio()?;
    bio.reserve(segments.len())?;
    let mut segments_left = segments.iter();
    let is_lent = segments_left.all(|part| bio.push(part.page.clone(), part.bytes.clone()));
    if !is_lent {
        disk.give(bio);
        return copy(disk, operation, first, segments, run);
    }
    let (result, bio) = run(SectorRange { first, count }, bio).ok_or(Error::Io)?;
    disk.give(bio);
    settle(result)
}

/// By way of memory that is the device's.
fn copy(
    disk: &Disk,
    operation: Operation,
    first: u64,
    segments: &[Segment],
    run: Run<'_>,
) -> Result<()> {
    let total = bytes_of(segments);
    let mut done = 0;
    while done < total {
        let len = (total - done).min(COPY_BYTES);
        let request = DmaRequest::new(len, PAGE_BYTES);
        let memory: DmaBuf = disk
            .memory
            .dma_alloc(&request)
            .map_err(|_| Error::OutOfMemory)?;
        if operation != Operation::Read {
            each_piece(
                segments,
                done..done + len,
                &mut |page, at, buffer, bytes| {
                    page.read(at, bytes);
                    memory.copy_in(buffer, bytes);
                },
            );
        }
        let mut bio = disk.bio()?;
        bio.reserve(1)?;
        let memory = memory.give();
        let span = memory.dev_addr(0, len).ok_or(Error::Invalid)?;
        let sectors = SectorRange {
            first: first + done as u64 / SECTOR_BYTES,
            count: len as u64 / SECTOR_BYTES,
        };
        bio.set_copied(memory, span);
        let (result, mut bio) = run(sectors, bio).ok_or(Error::Io)?;
        // The request is over, so the device is done with it, or was stopped.
        let memory = bio.copied.take();
        disk.give(bio);
        let memory = memory.ok_or(Error::Io)?.take_back();
        settle(result)?;
        if operation == Operation::Read {
            each_piece(
                segments,
                done..done + len,
                &mut |page, at, buffer, bytes| {
                    memory.copy_out(buffer, bytes);
                    page.write(at, bytes);
                },
            );
        }
        done += len;
    }
    Ok(())
}

/// Moves a piece: of which page, from where in it on, at which byte of the buffer, through what.
type MovePiece<'a> = &'a mut dyn FnMut(&Page, usize, usize, &mut [u8]);

/// Goes through the bytes `range` of the segments in small pieces.
fn each_piece(segments: &[Segment], range: Range<usize>, act: MovePiece<'_>) {
    let mut piece = [0; 256];
    let mut passed = 0;
    for segment in segments {
        let here = passed..passed + segment.bytes.len();
        let mut at = range.start.max(here.start);
        let end = range.end.min(here.end);
        while at < end {
            let len = (end - at).min(piece.len());
            let in_page = segment.bytes.start + (at - here.start);
            if let Some(bytes) = piece.get_mut(..len) {
                act(&segment.page, in_page, at - range.start, bytes);
            }
            at += len;
        }
        passed = here.end;
    }
}
