//! The producer's side of a ring.

use core::sync::atomic::{
    AtomicU64,
    Ordering::{Relaxed, Release},
    fence,
};

/// Words before the data: magic, capacity, head, tail, number of records, three spare.
pub const HEADER_WORDS: usize = 8;
/// `sietchp1` in ASCII.
pub(crate) const MAGIC: u64 = u64::from_be_bytes(*b"sietchp1");
pub(crate) const CAPACITY: usize = 1;
pub(crate) const HEAD: usize = 2;
pub(crate) const TAIL: usize = 3;
const RECORDS: usize = 4;

/// Words that every record starts with: length, kind and CPU; number; time.
pub(crate) const STAMP_WORDS: usize = 3;

/// What a record says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// What a CPU did at a moment.
    Sample = 1,
    /// A thread waited, and where.
    Blocked = 2,
    /// A thread woke another one.
    Woken = 3,
    /// A file is mapped into a program, executable.
    Mapping = 4,
}

impl Kind {
    pub(crate) fn from_number(number: u64) -> Option<Self> {
        [Self::Sample, Self::Blocked, Self::Woken, Self::Mapping]
            .into_iter()
            .find(|kind| *kind as u64 == number)
    }
}

/// What kind of record, where and when.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Stamp {
    /// What the record says.
    pub kind: Kind,
    /// The CPU that wrote it.
    pub cpu: u16,
    /// The time-stamp counter.
    pub cycles: u64,
}

/// A ring in memory that others may read at any time.
#[derive(Clone, Copy, Debug)]
pub struct Ring<'a> {
    header: &'a [AtomicU64],
    data: &'a [AtomicU64],
}

impl<'a> Ring<'a> {
    /// Makes an empty ring of `words`; `None` if there is no room for data.
    pub fn new(words: &'a [AtomicU64]) -> Option<Self> {
        let (header, data) = words.split_at_checked(HEADER_WORDS)?;
        if data.is_empty() {
            return None;
        }
        header.iter().for_each(|word| word.store(0, Relaxed));
        header[CAPACITY].store(data.len() as u64, Relaxed);
        header[0].store(MAGIC, Release);
        Some(Self { header, data })
    }

    fn index(&self, position: u64) -> usize {
        (position % self.data.len() as u64) as usize
    }

    fn place(&self, position: u64) -> &AtomicU64 {
        &self.data[self.index(position)]
    }

    /// Begins a record of at most `words_max` words after the stamp. Nobody sees it before
    /// [`Draft::finish`]. `None` if the ring is smaller than that.
    pub fn begin(&self, stamp: Stamp, words_max: usize) -> Option<Draft<'a>> {
        let needed = (STAMP_WORDS + words_max) as u64;
        if needed > self.data.len() as u64 {
            return None;
        }
        let start = self.header[HEAD].load(Relaxed);
        self.make_room(start + needed);
        let mut draft = Draft {
            ring: *self,
            start,
            length: 0,
            limit: needed as usize,
            at: self.index(start),
        };
        let number = self.header[RECORDS].load(Relaxed);
        draft.push((stamp.kind as u64) << 32 | u64::from(stamp.cpu) << 48);
        draft.push(number);
        draft.push(stamp.cycles);
        Some(draft)
    }

    /// Gives up the oldest records until words up to the position `end` have a place.
    fn make_room(&self, end: u64) {
        let before = self.header[TAIL].load(Relaxed);
        let head = self.header[HEAD].load(Relaxed);
        let mut tail = before;
        while end - tail > self.data.len() as u64 && tail < head {
            tail += u64::from(self.place(tail).load(Relaxed) as u32).max(1);
        }
        if tail != before {
            self.header[TAIL].store(tail, Relaxed);
            // A reader that sees a word of the new record sees the new tail too.
            fence(Release);
        }
    }
}

/// A record that is being written.
///
/// Invariant: its words so far are the `length` from the position `start` on, and `at` is where the
/// next one goes.
#[derive(Debug)]
#[must_use = "a record that is not finished is never seen"]
pub struct Draft<'a> {
    ring: Ring<'a>,
    start: u64,
    length: usize,
    limit: usize,
    at: usize,
}

impl Draft<'_> {
    /// Adds a word; false if the record is full.
    #[inline]
    pub fn push(&mut self, word: u64) -> bool {
        self.extend(core::iter::once(word)) == 1
    }

    /// Adds words until they end or the record is full; how many it took.
    #[inline]
    pub fn extend(&mut self, mut words: impl Iterator<Item = u64>) -> usize {
        let room = self.limit - self.length;
        let to_end = room.min(self.ring.data.len() - self.at);
        let mut count = fill(&self.ring.data[self.at..self.at + to_end], &mut words);
        self.at += count;
        if self.at == self.ring.data.len() {
            self.at = fill(&self.ring.data[..room - to_end], &mut words);
            count += self.at;
        }
        self.length += count;
        count
    }

    /// Changes the word at `index`, counted from the stamp's end.
    pub(crate) fn set(&mut self, index: usize, word: u64) {
        let index = STAMP_WORDS + index;
        if index < self.length {
            let position = self.start + index as u64;
            self.ring.place(position).store(word, Relaxed);
        }
    }

    /// Publishes the record.
    pub fn finish(self) {
        let header = self.ring.header;
        let length = self.length as u64;
        let first = self.ring.place(self.start);
        first.store(first.load(Relaxed) | length, Relaxed);
        header[RECORDS].store(header[RECORDS].load(Relaxed) + 1, Relaxed);
        header[HEAD].store(self.start + length, Release);
    }
}

/// Stores words into places until either end; how many.
#[inline]
fn fill(places: &[AtomicU64], words: &mut impl Iterator<Item = u64>) -> usize {
    let stored = places.iter().zip(words);
    stored.fold(0, |count, (place, word)| {
        place.store(word, Relaxed);
        count + 1
    })
}
