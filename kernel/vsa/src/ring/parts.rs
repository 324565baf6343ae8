//! Which requests of the disk a submission becomes: one for each stretch of blocks and memory that lies together.

use core::ops::Range;

use block::{Durability, Operation, REQUESTS_MAX};
use kernel_block::lent;
use vsa::AREA_EXTENTS_MAX;
use vsa::Pieces;
use vsa::ring::Checked;

/// Requests of one submission: its extents, and in each the memory's first page, whole pages, and the last page.
const PARTS_MAX: usize = AREA_EXTENTS_MAX * 3;
const _: () = assert!(
    PARTS_MAX <= REQUESTS_MAX,
    "an idle queue takes them together"
);

/// One request's bytes of the disk, and of the shared memory.
pub(super) struct Part {
    pub bytes: Range<u64>,
    pub memory: Range<u64>,
}

impl Part {
    /// That of a flush.
    pub const NOTHING: Self = Self {
        bytes: 0..0,
        memory: 0..0,
    };
}

/// The parts of a submission, in order.
#[derive(Clone)]
pub(super) struct Parts<'a> {
    pieces: Pieces<'a>,
    block_bytes: u64,
    /// What is left of the piece that was begun.
    bytes: Range<u64>,
    memory: Range<u64>,
}

impl<'a> Parts<'a> {
    pub(super) fn of(checked: &Checked<'a>, block_bytes: u32) -> Self {
        Self {
            pieces: checked.pieces.clone(),
            block_bytes: block_bytes.into(),
            bytes: 0..0,
            memory: checked.memory.clone(),
        }
    }

    /// How many there are; a flush is one without bytes.
    pub(super) fn count_all(&self) -> usize {
        self.clone().fold(0, |count, _| count + 1).max(1)
    }
}

impl Iterator for Parts<'_> {
    type Item = Part;

    fn next(&mut self) -> Option<Part> {
        if self.bytes.is_empty() {
            let piece = self.pieces.next().filter(|piece| piece.count() != 0)?;
            self.bytes = piece.first() * self.block_bytes..piece.end() * self.block_bytes;
        }
        let left = self.bytes.end - self.bytes.start;
        let len = match self.memory.is_empty() {
            true => left,
            false => {
                let end = self.memory.end.min(self.memory.start + left);
                lent::one_request(&(self.memory.start..end))
            }
        };
        let memory_end = self.memory.end.min(self.memory.start + len);
        let part = Part {
            bytes: self.bytes.start..self.bytes.start + len,
            memory: self.memory.start..memory_end,
        };
        self.bytes.start += len;
        self.memory.start = memory_end;
        Some(part)
    }
}

pub(super) fn operation_of(operation: vsa::ring::Operation) -> Operation {
    match operation {
        vsa::ring::Operation::Read => Operation::Read,
        vsa::ring::Operation::Write { is_forced: false } => Operation::Write(Durability::Volatile),
        vsa::ring::Operation::Write { is_forced: true } => Operation::Write(Durability::Forced),
        vsa::ring::Operation::Flush => Operation::Flush,
        vsa::ring::Operation::Discard => Operation::Discard,
    }
}
