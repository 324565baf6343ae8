//! What is asked of a disk, and how it ends.

use base::Instant;
use hal::Span;

use crate::order::{Durable, Flushed, Written};

/// A number of sectors.
pub type Sectors = u64;

/// Sectors that follow each other.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct SectorRange {
    /// The first.
    pub first: u64,
    /// How many.
    pub count: Sectors,
}

impl SectorRange {
    /// The sector behind the last, if there is such a number.
    pub fn end(self) -> Option<u64> {
        self.first.checked_add(self.count)
    }

    /// Bytes in all.
    pub fn bytes(self) -> u64 {
        self.count.saturating_mul(crate::SECTOR_BYTES)
    }
}

/// Whether a completed write has to survive a loss of power.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Durability {
    /// Not until a flush.
    Volatile,
    /// At once: the device forces it, or a flush follows.
    Forced,
}

/// What is to be done.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Operation {
    /// Sectors to memory.
    Read,
    /// Memory to sectors.
    Write(Durability),
    /// What was complete is brought to the medium.
    Flush,
    /// The content is of no use any more.
    Discard,
    /// Zeroes, without memory full of them.
    WriteZeroes {
        /// The device may give up the room.
        may_unmap: bool,
    },
}

impl Operation {
    /// Whether it moves memory.
    pub fn has_data(self) -> bool {
        matches!(self, Self::Read | Self::Write(_))
    }

    /// Whether it changes the disk.
    pub fn changes(self) -> bool {
        !matches!(self, Self::Read | Self::Flush)
    }
}

/// What comes with a request and is handed back with its end: the memory, what keeps that alive, and
/// who waits.
pub trait Keep: Sized {
    /// What comes with a [transfer of a page](crate::Queue::submit_page): who waits for it.
    type Owner;

    /// The memory, in order; nothing for what moves none. The same at each call.
    fn spans(&self) -> &[Span];

    /// What comes with such a transfer, as it comes with other requests.
    fn of_page(memory: Span, owner: Self::Owner) -> Self;
}

/// What somebody asks for.
#[derive(Debug)]
pub struct Request<K> {
    /// What is to be done.
    pub operation: Operation,
    /// Where; nothing for a flush.
    pub sectors: SectorRange,
    /// Its memory, and who waits.
    pub keep: K,
}

/// What was done.
#[derive(PartialEq, Eq, Debug)]
#[must_use]
pub enum Done {
    /// The memory has the sectors' bytes.
    Read,
    /// The sectors are changed; a loss of power may undo it.
    Written(Written),
    /// The sectors are changed for good.
    Durable(Durable),
    /// Writes were brought to the medium.
    Flushed(Flushed),
    /// The sectors have no content any more.
    Discarded,
}

/// Why a request failed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Failure {
    /// The device says that it could not.
    Medium,
    /// The device does not know the command.
    Unsupported,
    /// There are no such sectors.
    OutOfRange,
    /// It does not begin and end with blocks, or memory and sectors differ in length.
    Misaligned,
    /// Nothing can be changed.
    ReadOnly,
    /// The device did not answer, even after it was started anew.
    TimedOut,
    /// The device is gone, or answers nonsense for good.
    Gone,
}

/// How a request ended.
#[derive(Debug)]
pub struct Completion<K> {
    /// What was done, or why it was not.
    pub result: Result<Done, Failure>,
    /// What was asked for, and where.
    pub operation: Operation,
    /// See `operation`.
    pub sectors: SectorRange,
    /// When it was handed in.
    pub begun: Instant,
    /// What came with the request.
    pub keep: K,
}

/// How a [transfer of a page](crate::Queue::submit_page) ended.
#[derive(Debug)]
pub struct PageEnd<O> {
    /// What was done, or why it was not.
    pub result: Result<Done, Failure>,
    /// What was asked for, and where.
    pub operation: Operation,
    /// See `operation`.
    pub sectors: SectorRange,
    /// When it was handed in.
    pub begun: Instant,
    /// The part of the page.
    pub memory: Span,
    /// What came with it.
    pub owner: O,
}

/// Who takes ends. A closure takes all alike.
pub trait Sink<K: Keep> {
    /// A request has ended.
    fn ended(&mut self, completion: Completion<K>);

    /// A transfer of a page has.
    fn page_ended(&mut self, end: PageEnd<K::Owner>) {
        self.ended(Completion {
            result: end.result,
            operation: end.operation,
            sectors: end.sectors,
            begun: end.begun,
            keep: K::of_page(end.memory, end.owner),
        });
    }
}

impl<K: Keep, F: FnMut(Completion<K>)> Sink<K> for F {
    fn ended(&mut self, completion: Completion<K>) {
        self(completion);
    }
}
