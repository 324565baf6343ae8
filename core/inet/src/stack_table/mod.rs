//! What a stack in a program shows to tools: its sockets and counters, in memory that it shares with the kernel.
//!
//! # Problem
//! `ss` asks the kernel, which knows nothing of the connections of a stack in a program. The program may be stopped, or
//! in the middle of a change, or lie; and it should not pay while nobody asks.
//!
//! # Idea
//! A table has a row for each socket and a text with the counters. The kernel says by the word `ASKED` that somebody looks;
//! the program writes all rows and says so by `ANSWERED`. The kernel does not need that: it reads whatever is there, and
//! believes nothing of it.
//!
//! ```text
//! 0     4          8       12        16         4096        4096 + rows * 128
//! asked │ answered │ count │ version │ length │ … │ rows: version, 31 words │ text
//! ```
//!
//! # Invariants
//! - A row and the text have a version that is odd while they are written; a reader that finds it odd or changed tries
//!   again [`TRIES`] times, and then does without.
//! - [`StackRow::decode`] returns what a socket of that kind can be, or nothing.
//!
//! # Not here
//! Who may have a table, and on which address (`kernel/inet-sockets`); when it is written (`user/preload`).

mod row;

use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;

use base::SharedMemory;

pub use row::StackRow;

/// Words of a row behind its version.
pub const PAYLOAD_WORDS: usize = 31;
const WORD_BYTES: usize = 4;
const ROW_BYTES: usize = (1 + PAYLOAD_WORDS) * WORD_BYTES;

/// How often a reader tries.
pub const TRIES: usize = 8;
/// Rows that a table may have.
pub const ROWS_MAX: usize = 16 * 1024;
/// Bytes of the text.
pub const TEXT_BYTES: usize = 16 * 1024;

const ASKED: usize = 0;
const ANSWERED: usize = 4;
const COUNT: usize = 8;
const TEXT_VERSION: usize = 12;
const TEXT_LENGTH: usize = 16;
const HEAD_BYTES: usize = 4096;

/// A row's words.
pub type Payload = [u32; PAYLOAD_WORDS];

/// A table in memory of [`bytes`](Self::bytes) bytes.
#[derive(Clone, Copy, Debug)]
pub struct StackTable<M> {
    memory: M,
    rows: usize,
}

impl<M> StackTable<M> {
    /// How long the memory is.
    pub const fn bytes(rows: usize) -> usize {
        HEAD_BYTES + rows * ROW_BYTES + TEXT_BYTES
    }

    /// How many rows there may be.
    pub fn rows(&self) -> usize {
        self.rows
    }

    fn row_at(&self, row: usize) -> Option<usize> {
        (row < self.rows).then_some(HEAD_BYTES + row * ROW_BYTES)
    }

    fn text_at(&self) -> usize {
        HEAD_BYTES + self.rows * ROW_BYTES
    }
}

impl<M: SharedMemory> StackTable<M> {
    /// `memory` is as long as [`bytes`](Self::bytes) says.
    pub fn new(memory: M, rows: usize) -> Self {
        Self { memory, rows }
    }

    /// The kernel's half: somebody looks, for the `count`th time.
    pub fn ask(&self, count: u32) {
        self.memory.store(ASKED, count);
    }

    /// How many looks were answered.
    pub fn answered(&self) -> u32 {
        self.memory.load(ANSWERED)
    }

    /// The program's half: the look that was not answered yet.
    pub fn question(&self) -> Option<u32> {
        let asked = self.memory.load(ASKED);
        (asked != self.answered()).then_some(asked)
    }

    /// It is answered.
    pub fn answer(&self, question: u32) {
        self.memory.store(ANSWERED, question);
    }

    /// Rows that are used; never more than there are.
    pub fn count(&self) -> usize {
        (self.memory.load(COUNT) as usize).min(self.rows)
    }

    /// Writes all rows from the first one on, and how many there are. What has no room is left out.
    pub fn write_rows(&self, rows: impl Iterator<Item = Option<Payload>>) {
        let mut count = 0;
        for (row, payload) in (0..self.rows).zip(rows) {
            match payload {
                Some(payload) => self.write_row(row, &payload),
                None => self.clear_row(row),
            }
            count = row + 1;
        }
        self.memory.store(COUNT, count as u32);
    }

    fn write_row(&self, row: usize, payload: &Payload) {
        let Some(at) = self.row_at(row) else { return };
        self.versioned(at, || {
            for (index, word) in (1..).zip(payload) {
                self.memory.store(at + index * WORD_BYTES, *word);
            }
        });
    }

    /// Most free rows were free before, and no word of theirs is written.
    fn clear_row(&self, row: usize) {
        let is_used = |at: usize| self.memory.load(at + WORD_BYTES) != 0;
        if self.row_at(row).is_some_and(is_used) {
            self.write_row(row, &[0; PAYLOAD_WORDS]);
        }
    }

    fn versioned(&self, at: usize, write: impl FnOnce()) {
        let version = self.memory.load(at) | 1;
        self.memory.store(at, version);
        write();
        self.memory.store(at, version.wrapping_add(1));
    }

    /// What `read` finds while nobody writes.
    fn steady<T>(&self, at: usize, read: impl Fn() -> T) -> Option<T> {
        (0..TRIES).find_map(|_| {
            let before = self.memory.load(at);
            let found = read();
            let is_steady = before.is_multiple_of(2) && self.memory.load(at) == before;
            is_steady.then_some(found)
        })
    }

    /// A row's words; `None` if it has none, or they change all the time.
    pub fn read_row(&self, row: usize) -> Option<Payload> {
        let at = self.row_at(row)?;
        let word = |index: usize| self.memory.load(at + (1 + index) * WORD_BYTES);
        self.steady(at, || core::array::from_fn(word))
    }

    /// Writes the counters, lines of `group name value`; lines for which there is no room are left out.
    pub fn write_text(&self, text: &str) {
        let whole = text.as_bytes().iter().take(TEXT_BYTES).rposition(is_end);
        let bytes = text
            .as_bytes()
            .get(..whole.map_or(0, |last| last + 1))
            .unwrap_or_default();
        self.versioned(TEXT_VERSION, || {
            for (index, four) in bytes.chunks(WORD_BYTES).enumerate() {
                let mut word = [0; WORD_BYTES];
                word.iter_mut().zip(four).for_each(|(to, from)| *to = *from);
                let at = self.text_at() + index * WORD_BYTES;
                self.memory.store(at, u32::from_ne_bytes(word));
            }
            self.memory.store(TEXT_LENGTH, bytes.len() as u32);
        });
    }

    /// The counters, of which only lines of that form are kept.
    pub fn read_counters(&self) -> Vec<StackCounter> {
        let read = || {
            let length = (self.memory.load(TEXT_LENGTH) as usize).min(TEXT_BYTES);
            let mut bytes = vec![0; length.next_multiple_of(WORD_BYTES)];
            for (index, four) in bytes.chunks_mut(WORD_BYTES).enumerate() {
                let word = self.memory.load(self.text_at() + index * WORD_BYTES);
                four.copy_from_slice(&word.to_ne_bytes());
            }
            bytes.truncate(length);
            bytes
        };
        let bytes = self.steady(TEXT_VERSION, read).unwrap_or_default();
        bytes
            .split(is_end)
            .filter_map(StackCounter::parse)
            .collect()
    }
}

fn is_end(byte: &u8) -> bool {
    *byte == b'\n'
}

/// A counter of a stack in a program.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StackCounter {
    /// What it is about.
    pub group: String,
    /// What is counted.
    pub name: String,
    /// How often.
    pub value: u64,
}

impl StackCounter {
    fn parse(line: &[u8]) -> Option<Self> {
        let mut words = core::str::from_utf8(line).ok()?.split(' ');
        let mut word = || words.next().filter(|word| is_name(word)).map(String::from);
        let (group, name) = (word()?, word()?);
        let value = words.next()?.parse().ok()?;
        words
            .next()
            .is_none()
            .then_some(Self { group, name, value })
    }
}

/// What may stand in a line that others read.
fn is_name(word: &str) -> bool {
    const NAME_BYTES_MAX: usize = 40;
    let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
    (1..=NAME_BYTES_MAX).contains(&word.len()) && word.bytes().all(is_plain)
}

#[cfg(test)]
mod tests;
