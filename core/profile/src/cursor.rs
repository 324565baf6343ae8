//! The reader's side of a ring: what to copy, what of the copy is whole, what was missed.
//!
//! A round: copy the header; copy the words of [`Cursor::wanted`]; copy the header again;
//! hand both to [`Cursor::take`]. Words that the second header's `tail` has left may have
//! been overwritten during the copy and are not looked at (**Boundaries**).

use core::ops::Range;

use crate::ring::{CAPACITY, HEAD, HEADER_WORDS, MAGIC, TAIL};

/// A ring's header, copied.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Header {
    capacity: u64,
    head: u64,
    tail: u64,
}

impl Header {
    /// Reads a copy; `None` if it is not a ring's header, or was copied while it changed.
    pub fn read(words: &[u64]) -> Option<Self> {
        let words: &[u64; HEADER_WORDS] = words.first_chunk()?;
        let header = Self {
            capacity: words[CAPACITY],
            head: words[HEAD],
            tail: words[TAIL],
        };
        let is_sound = words[0] == MAGIC
            && header.capacity != 0
            && header.tail <= header.head
            && header.head - header.tail <= header.capacity;
        is_sound.then_some(header)
    }

    /// Where the words at these positions lie, as word indices from the ring's start. The
    /// second part is empty unless they cross the end of the data.
    pub fn places(&self, positions: Range<u64>) -> [Range<u64>; 2] {
        let length = positions.end.saturating_sub(positions.start);
        let first = HEADER_WORDS as u64;
        let start = positions.start % self.capacity;
        let before_end = length.min(self.capacity - start);
        [
            first + start..first + start + before_end,
            first..first + length - before_end,
        ]
    }
}

/// How far a reader has come.
#[derive(Clone, Debug, Default)]
pub struct Cursor {
    position: u64,
    /// The number of the next record, once it is known.
    next: Option<u64>,
    lost: u64,
}

impl Cursor {
    /// Reads a ring from its first record on; those that are gone already count as lost.
    pub fn from_start() -> Self {
        Self {
            next: Some(0),
            ..Self::default()
        }
    }

    /// Reads what comes after the header was copied.
    pub fn from_now(header: &Header) -> Self {
        Self {
            position: header.head,
            ..Self::default()
        }
    }

    /// Records that were overwritten before they were read.
    pub fn lost(&self) -> u64 {
        self.lost
    }

    /// The positions to copy.
    pub fn wanted(&self, header: &Header) -> Range<u64> {
        let start = self.position.max(header.tail);
        start..header.head.max(start)
    }

    /// Calls `act` with each whole record of `words`, which were copied from the position
    /// `from` on; `after` is the header as it was afterwards.
    pub fn take(&mut self, from: u64, words: &[u64], after: &Header, act: &mut impl FnMut(&[u64])) {
        let end = from + words.len() as u64;
        self.position = from.max(after.tail);
        while self.position < end {
            let rest = &words[(self.position - from) as usize..];
            let length = (rest[0] as u32 as usize).max(1);
            let Some(record) = rest.get(..length) else {
                return;
            };
            self.count(record);
            act(record);
            self.position += length as u64;
        }
    }

    fn count(&mut self, record: &[u64]) {
        let Some(&number) = record.get(1) else {
            return;
        };
        let expected = self.next.unwrap_or(number);
        self.lost += number.saturating_sub(expected);
        self.next = Some(number + 1);
    }
}
