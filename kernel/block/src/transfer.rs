//! Pages to and from a disk.
//!
//! A device that reaches all memory is told the pages themselves. Where an IOMMU translates, a page
//! would have to be mapped for the time of a request and forgotten afterwards, which costs more
//! than a copy (`mach::mem::Pinned`): there the bytes pass through memory of the device's.

use alloc::vec::Vec;
use core::ops::Range;

use base::{Instant, PAGE_BYTES};
use block::{Done, Operation, SECTOR_BYTES, SectorRange};
use hal::{DmaBuf, DmaRequest, DmaSource, HasDeviceAddr, Span};
use mach::mem::fallible::TryGrow;
use mach::mem::{Page, Pinned};
use sync::{Error, Result};

use crate::disk::{Disk, error_of};
use crate::outcome::{Ended, Memory};

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
    move_pages_by(
        disk,
        operation,
        first,
        segments,
        &mut |sectors, spans, memory| Some(disk.run(operation, sectors, spans, memory)),
    )
}

/// The same at boot, where no thread can sleep yet, until then.
pub(crate) fn read_pages_at_boot(
    disk: &Disk,
    first: u64,
    segments: &[Segment],
    until: Instant,
) -> Result<()> {
    let operation = Operation::Read;
    move_pages_by(
        disk,
        operation,
        first,
        segments,
        &mut |sectors, spans, memory| disk.run_at_boot(operation, sectors, spans, memory, until),
    )
}

/// Sends a request and sees to its end; `None` if that did not come.
type Run<'a> = &'a mut dyn FnMut(SectorRange, Vec<Span>, Memory) -> Option<Ended>;

fn move_pages_by(
    disk: &Disk,
    operation: Operation,
    first: u64,
    segments: &[Segment],
    run: Run<'_>,
) -> Result<()> {
    let count = bytes_of(segments) as u64 / SECTOR_BYTES;
    let Some((spans, lent)) = lend(segments)? else {
        return copy(disk, operation, first, segments, run);
    };
    let sectors = SectorRange { first, count };
    let (result, _) = run(sectors, spans, Memory::Lent(lent)).ok_or(Error::Io)?;
    settle(result.map_err(error_of)?);
    Ok(())
}

/// What a write is worth is fsync(2)'s matter.
fn settle(done: Done) {
    if let Done::Written(written) = done {
        written.leave_volatile();
    }
}

/// Memory as the device is told of it, and what keeps it.
type Lent = (Vec<Span>, Vec<Pinned<()>>);

/// The segments as the device sees them; `None` where it does not.
fn lend(segments: &[Segment]) -> Result<Option<Lent>> {
    let (mut spans, mut lent) = (Vec::new(), Vec::new());
    spans.make_room(segments.len())?;
    lent.make_room(segments.len())?;
    for Segment { page, bytes } in segments {
        let Some(pinned) = Pinned::new(page.clone(), ()) else {
            return Ok(None);
        };
        let span = Span::of_lent(&pinned, bytes.start, bytes.len());
        spans.push(span.ok_or(Error::Invalid)?);
        lent.push(pinned);
    }
    Ok(Some((spans, lent)))
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
        let memory = memory.give();
        let span = memory.dev_addr(0, len).ok_or(Error::Invalid)?;
        let sectors = SectorRange {
            first: first + done as u64 / SECTOR_BYTES,
            count: len as u64 / SECTOR_BYTES,
        };
        let mut spans = Vec::new();
        spans.make_room(1)?;
        spans.push(span);
        let ended = run(sectors, spans, Memory::Copied(memory));
        let (result, memory) = ended.ok_or(Error::Io)?;
        // The request is over, so the device is done with it, or was stopped.
        let Memory::Copied(memory) = memory else {
            return Err(Error::Io);
        };
        let memory = memory.take_back();
        settle(result.map_err(error_of)?);
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
