//! Cutting a request into commands that keep to the device's limits.
//!
//! Memory that happens to lie together is told to the device as one piece: fewer descriptors, which
//! is the only merging that pays for requests that somebody waits for.

use alloc::vec::Vec;

use hal::Span;

use crate::SECTOR_BYTES;
use crate::limits::{Bulk, Limits};
use crate::request::{Failure, Operation, SectorRange};

/// How far a request has been cut.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Cursor {
    /// Sectors that are in commands.
    pub sectors: u64,
    /// The span that the next command begins in, and where in it.
    span: usize,
    offset: u32,
}

impl Cursor {
    /// All has been cut.
    pub(crate) fn at_end(range: SectorRange) -> Self {
        Self {
            sectors: range.count,
            ..Self::default()
        }
    }

    /// Whether nothing has been cut.
    pub(crate) fn is_at_start(&self) -> bool {
        self.sectors == 0
    }
}

/// Bytes of a page, as drivers know it.
const PAGE_BYTES: u64 = 4096;

/// Whether each transfer to or from one page ([`is_in_page`]) is one command, whatever blocks it is about.
pub(crate) fn takes_pages(limits: &Limits) -> bool {
    let page = PAGE_BYTES as u32;
    limits.segment_bytes_max >= page
        && limits.command_bytes_max >= page
        && limits.segment_align <= SECTOR_BYTES as u32
        && limits.segment_boundary.is_none_or(|at| at >= PAGE_BYTES)
        && limits.chunk_sectors.is_none()
}

/// As many sectors from `first` on as the memory is long.
#[inline]
pub(crate) fn sectors_of(first: u64, memory: Span) -> SectorRange {
    SectorRange {
        first,
        count: u64::from(memory.len()) / SECTOR_BYTES,
    }
}

/// Whether the memory of a transfer is whole sectors of one page, and as long as the blocks.
#[inline]
pub(crate) fn is_in_page(range: SectorRange, spans: &[Span]) -> bool {
    let [span] = spans else {
        return false;
    };
    let (offset, bytes) = (span.addr().0 % PAGE_BYTES, u64::from(span.len()));
    offset + bytes <= PAGE_BYTES
        && offset.is_multiple_of(SECTOR_BYTES)
        && range.count != 0
        && bytes == range.bytes()
}

/// Whether a transfer is one command as it is, as most are: one piece of memory that the limits allow.
#[inline]
pub(crate) fn is_one_command(limits: &Limits, range: SectorRange, spans: &[Span]) -> bool {
    let [span] = spans else {
        return false;
    };
    let bytes = u64::from(span.len());
    let end = span.addr().0 + bytes;
    range.count != 0
        && bytes <= u64::from(limits.segment_bytes_max.min(limits.command_bytes_max))
        && bytes == range.bytes()
        && is_aligned(limits, *span)
        && range.count <= up_to_chunk(limits, range.first)
        && limits
            .segment_boundary
            .is_none_or(|boundary| span.addr().0 / boundary == (end - 1) / boundary)
}

/// The next command's sectors; its pieces of memory are put into `pieces`. `None` at the end.
///
/// Errors: `Misaligned` where no cut keeps to the limits.
pub fn next(
    limits: &Limits,
    operation: Operation,
    range: SectorRange,
    spans: &[Span],
    cursor: &mut Cursor,
    pieces: &mut Vec<Span>,
) -> Result<Option<SectorRange>, Failure> {
    pieces.clear();
    let left = range.count.saturating_sub(cursor.sectors);
    if left == 0 || cursor.sectors != 0 && planted::is("a long request loses its last commands") {
        return Ok(None);
    }
    let first = range.first + cursor.sectors;
    let most = left.min(up_to_chunk(limits, first));
    let count = match operation {
        Operation::Read | Operation::Write(_) => {
            let bytes = most.saturating_mul(SECTOR_BYTES);
            let bytes = bytes.min(u64::from(limits.command_bytes_max)) as u32;
            u64::from(gather(limits, spans, cursor, bytes, pieces)?) / SECTOR_BYTES
        }
        Operation::Discard => most.min(sectors_max(limits.discard)?),
        Operation::WriteZeroes { .. } => most.min(sectors_max(limits.zeroes)?),
        Operation::Flush => most,
    };
    cursor.sectors += count;
    Ok(Some(SectorRange { first, count }))
}

fn sectors_max(bulk: Option<Bulk>) -> Result<u64, Failure> {
    let bulk = bulk.ok_or(Failure::Unsupported)?;
    Ok(bulk.sectors_max.into())
}

/// Sectors from `first` to the end of its chunk.
fn up_to_chunk(limits: &Limits, first: u64) -> u64 {
    let in_chunk = |chunk: u32| u64::from(chunk) - first % u64::from(chunk);
    limits.chunk_sectors.map_or(u64::MAX, in_chunk)
}

/// Takes pieces for at most `bytes` bytes, a whole number of blocks; returns how many bytes.
fn gather(
    limits: &Limits,
    spans: &[Span],
    cursor: &mut Cursor,
    bytes: u32,
    pieces: &mut Vec<Span>,
) -> Result<u32, Failure> {
    let mut taken = 0;
    // Where the last whole block ended: bytes, pieces, length of the last piece, cursor.
    let mut whole = (0, 0, 0, *cursor);
    while taken < bytes
        && let Some(span) = spans.get(cursor.span)
    {
        let room = bytes - taken;
        let Some(piece) = piece_at(limits, *span, cursor.offset, room) else {
            (cursor.span, cursor.offset) = (cursor.span + 1, 0);
            continue;
        };
        if !is_aligned(limits, piece) {
            return Err(Failure::Misaligned);
        }
        match joined(limits, pieces.last(), piece) {
            Some(longer) => _ = pieces.pop().map(|_| pieces.push(longer)),
            None if pieces.len() == usize::from(limits.segments_max) => break,
            None if leaves_gap(limits, pieces.last(), piece) => break,
            None => pieces.push(piece),
        }
        taken += piece.len();
        cursor.offset += piece.len();
        let over = taken % limits.block_bytes;
        if over < piece.len() {
            let last = pieces.last().map_or(0, Span::len) - over;
            let at = Cursor {
                offset: cursor.offset - over,
                ..*cursor
            };
            whole = (taken - over, pieces.len(), last, at);
        }
    }
    let (taken, count, last, at) = whole;
    *cursor = at;
    pieces.truncate(count);
    let cut = pieces.pop().and_then(|piece| piece.part(0, last));
    pieces.extend(cut);
    match taken {
        0 => Err(Failure::Misaligned),
        taken => Ok(taken),
    }
}

/// What the device may be told in one piece of `span` from `offset` on; `None` at its end.
fn piece_at(limits: &Limits, span: Span, offset: u32, room: u32) -> Option<Span> {
    let left = span.len().checked_sub(offset).filter(|left| *left != 0)?;
    let start = span.addr() + u64::from(offset);
    let to_boundary = limits
        .segment_boundary
        .map_or(u64::MAX, |boundary| boundary - start.0 % boundary);
    let len = left.min(room).min(limits.segment_bytes_max);
    let len = u64::from(len).min(to_boundary) as u32;
    span.part(offset, len)
}

fn is_aligned(limits: &Limits, piece: Span) -> bool {
    let align = u64::from(limits.segment_align);
    piece.addr().0.is_multiple_of(align) && u64::from(piece.len()).is_multiple_of(align)
}

/// Whether a device that is told pages cannot be told of this one behind the last.
fn leaves_gap(limits: &Limits, last: Option<&Span>, piece: Span) -> bool {
    let (Some(bytes), Some(last)) = (limits.page_bytes.map(u64::from), last) else {
        return false;
    };
    let end = last.addr().0 + u64::from(last.len());
    !end.is_multiple_of(bytes) || !piece.addr().0.is_multiple_of(bytes)
}

/// Both as one piece, where they touch and the limits allow it.
fn joined(limits: &Limits, last: Option<&Span>, piece: Span) -> Option<Span> {
    let whole = last?.joined(piece)?;
    let crosses = |boundary: u64| {
        whole.addr().0 / boundary != (whole.addr().0 + u64::from(whole.len()) - 1) / boundary
    };
    let fits =
        whole.len() <= limits.segment_bytes_max && !limits.segment_boundary.is_some_and(crosses);
    fits.then_some(whole)
}
