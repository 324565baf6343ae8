//! A program's own queue to an area: rings in memory that it shares with whoever drives the disk.
//!
//! # Problem
//! The program writes what it likes into the rings, at any moment, also while they are read. Nothing of it may
//! reach a block or a byte of memory that is not its own, make the driver loop, or be looked at twice.
//!
//! # Layout
//! ```text
//! words, one in a cache line each            written by
//!   0  submissions: tail                     program
//!  64  submissions: head                     driver
//! 128  completions: tail                     driver
//! 192  completions: head                     program
//! 256  the driver sleeps: ring its bell      driver
//! 320  the program sleeps: ring its bell     program
//! submission, 32 bytes                       completion, 16 bytes
//!   0  u8 operation   1  u8 flags              0  u64 cookie
//!   4  u32 blocks     8  u64 first block       8  u32 outcome
//!  16  u64 byte of the shared memory
//!  24  u64 cookie
//! ```
//! Tails and heads count without end; modulo the ring's size, a power of two, they are places. Each side keeps the
//! index that it writes to itself and never reads it back. The driver takes a submission by copying
//! its 32 bytes once, checks the copy, and translates it by the area's [`Map`].
//!
//! The submissions stand behind the words, the completions behind the submissions ([`RingSize`]).
//!
//! Not here: the shared memory itself, bells, who polls.

mod driver;
mod page;
mod program;

use core::ops::Range;

pub use driver::{Completer, Taker};
pub use page::{PageAccess, Translation};
pub use program::Program;

use crate::extent::Blocks;
use crate::map::{Map, Pieces};

/// Bytes of a submission.
pub const SUBMISSION_BYTES: usize = 32;
/// Bytes of a completion.
pub const COMPLETION_BYTES: usize = 16;
/// Entries of the largest ring.
pub const RING_ENTRIES_MAX: u32 = 4096;
/// Where the words are.
pub const WORDS: Words = Words {
    submission_tail: 0,
    submission_head: 64,
    completion_tail: 128,
    completion_head: 192,
    driver_sleeps: 256,
    program_sleeps: 320,
};
/// Bytes in front of the submissions.
const WORDS_BYTES: usize = 512;
const FORCED: u8 = 1;

/// Offsets of the shared words of 32 bits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Words {
    /// Written by the program.
    pub submission_tail: usize,
    /// Written by the driver.
    pub submission_head: usize,
    /// Written by the driver.
    pub completion_tail: usize,
    /// Written by the program.
    pub completion_head: usize,
    /// Not 0: the driver wants its bell.
    pub driver_sleeps: usize,
    /// Not 0: the program wants its bell.
    pub program_sleeps: usize,
}

/// What the other side's index cannot be: the ring is not used any more.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Nonsense;

/// The size of a ring.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RingSize(u32);

impl RingSize {
    /// A power of two, at most [`RING_ENTRIES_MAX`].
    pub fn new(entries: u32) -> Option<Self> {
        let fits = entries.is_power_of_two() && entries <= RING_ENTRIES_MAX;
        fits.then_some(Self(entries))
    }

    /// How many entries each of the two has.
    pub fn entries(self) -> u32 {
        self.0
    }

    /// Bytes of words, submissions and completions together.
    pub fn bytes(self) -> usize {
        WORDS_BYTES + self.0 as usize * (SUBMISSION_BYTES + COMPLETION_BYTES)
    }

    /// Where the submission of an index stands.
    #[inline]
    pub fn submission_at(self, index: u32) -> usize {
        WORDS_BYTES + self.place(index) * SUBMISSION_BYTES
    }

    /// Where the completion of an index stands.
    #[inline]
    pub fn completion_at(self, index: u32) -> usize {
        WORDS_BYTES + self.0 as usize * SUBMISSION_BYTES + self.place(index) * COMPLETION_BYTES
    }

    /// The place of an index.
    #[inline]
    pub fn place(self, index: u32) -> usize {
        (index & (self.0 - 1)) as usize
    }

    /// Entries to be taken by who has taken those before `head`; `tail` was written by the other side.
    pub fn filled(self, head: u32, tail: u32) -> Result<u32, Nonsense> {
        let count = tail.wrapping_sub(head);
        (count <= self.0).then_some(count).ok_or(Nonsense)
    }

    /// Entries that may be put by who has put those before `tail`; `head` was written by the other side.
    pub fn room(self, tail: u32, head: u32) -> Result<u32, Nonsense> {
        self.filled(head, tail).map(|count| self.0 - count)
    }
}

/// What is to be done.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Operation {
    /// Blocks to memory.
    Read,
    /// Memory to blocks, and whether it is to survive at once.
    Write {
        /// It survives when it is complete.
        is_forced: bool,
    },
    /// What was complete survives.
    Flush,
    /// The content is of no use any more.
    Discard,
}

/// What a program asks for, not yet checked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Submission {
    /// What is to be done.
    pub operation: Operation,
    /// The first block of the area.
    pub first: u64,
    /// How many.
    pub count: Blocks,
    /// Where the memory begins.
    pub memory: u64,
    /// Comes back with the completion.
    pub cookie: u64,
}

/// Why a submission is not carried out: the outcome in its completion.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// It was done.
    Done = 0,
    /// No such operation or flag.
    Unknown = 1,
    /// Not the area's blocks, or none.
    OutOfArea = 2,
    /// Not the shared memory's bytes, or they do not begin with a multiple of a block's.
    OutOfMemory = 3,
    /// The device failed.
    Failed = 4,
    /// The area was resized or taken away.
    Revoked = 5,
}

impl Outcome {
    /// The one that a completion says.
    fn of(number: u32) -> Self {
        match number {
            0 => Self::Done,
            1 => Self::Unknown,
            2 => Self::OutOfArea,
            3 => Self::OutOfMemory,
            5 => Self::Revoked,
            _ => Self::Failed,
        }
    }
}

/// A submission that may be carried out.
#[derive(Clone, Debug)]
pub struct Checked<'a> {
    /// What is to be done.
    pub operation: Operation,
    /// Where on the disk; nothing for a flush.
    pub pieces: Pieces<'a>,
    /// Which bytes of the shared memory; empty for what moves none.
    pub memory: Range<u64>,
    /// Comes back with the completion.
    pub cookie: u64,
}

impl Submission {
    /// As the program writes it.
    pub fn encode(&self) -> [u8; SUBMISSION_BYTES] {
        let (operation, flags) = match self.operation {
            Operation::Read => (1, 0),
            Operation::Write { is_forced } => (2, u8::from(is_forced) * FORCED),
            Operation::Flush => (3, 0),
            Operation::Discard => (4, 0),
        };
        let mut bytes = [0; SUBMISSION_BYTES];
        let fields = bytes.as_chunks_mut::<8>().0;
        let count = (self.count as u32).to_le_bytes();
        let [a, b, c, d] = count;
        let words = [
            [operation, flags, 0, 0, a, b, c, d],
            self.first.to_le_bytes(),
            self.memory.to_le_bytes(),
            self.cookie.to_le_bytes(),
        ];
        fields.copy_from_slice(&words);
        bytes
    }

    /// What a copy of a submission says; else its cookie, for the completion.
    pub fn decode(bytes: &[u8; SUBMISSION_BYTES]) -> Result<Self, (Outcome, u64)> {
        let [head, first, memory, cookie] = [0, 8, 16, 24].map(|at| {
            let field = bytes.get(at..).and_then(|rest| rest.first_chunk());
            field.map_or(0, |field: &[u8; 8]| u64::from_le_bytes(*field))
        });
        let operation = match head as u32 {
            0x0001 => Operation::Read,
            0x0002 => Operation::Write { is_forced: false },
            0x0102 => Operation::Write { is_forced: true },
            0x0003 => Operation::Flush,
            0x0004 => Operation::Discard,
            _ => return Err((Outcome::Unknown, cookie)),
        };
        Ok(Self {
            operation,
            first,
            count: head >> 32,
            memory,
            cookie,
        })
    }

    /// Checks it against the area, whose blocks have `block_bytes` bytes, a power of two, and the `memory_bytes` that the
    /// program shares.
    pub fn check<'a>(
        &self,
        map: &'a Map,
        block_bytes: u32,
        memory_bytes: u64,
    ) -> Result<Checked<'a>, Outcome> {
        let is_flush = self.operation == Operation::Flush;
        let has_blocks = (self.count != 0) != is_flush;
        let pieces = map.translate(self.first, self.count);
        let pieces = pieces
            .ok()
            .filter(|_| has_blocks)
            .ok_or(Outcome::OutOfArea)?;
        let moves = matches!(self.operation, Operation::Read | Operation::Write { .. });
        let memory = match moves {
            true => self.memory_of(block_bytes, memory_bytes),
            false => Some(0..0),
        };
        Ok(Checked {
            operation: self.operation,
            pieces,
            memory: memory.ok_or(Outcome::OutOfMemory)?,
            cookie: self.cookie,
        })
    }

    fn memory_of(&self, block_bytes: u32, memory_bytes: u64) -> Option<Range<u64>> {
        let bytes = self.count.checked_mul(block_bytes.into())?;
        let end = self.memory.checked_add(bytes)?;
        let fits = end <= memory_bytes && self.memory & (u64::from(block_bytes) - 1) == 0;
        fits.then_some(self.memory..end)
    }
}

/// A completion, as the driver writes it.
pub fn completion(cookie: u64, outcome: Outcome) -> [u8; COMPLETION_BYTES] {
    let mut bytes = [0; COMPLETION_BYTES];
    let words = [
        cookie.to_le_bytes(),
        u64::from(outcome as u32).to_le_bytes(),
    ];
    bytes.as_chunks_mut::<8>().0.copy_from_slice(&words);
    bytes
}
