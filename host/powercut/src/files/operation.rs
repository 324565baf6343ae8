//! The operations.

use std::fmt;

/// The two directories, each with a place for one file.
pub const FOLDERS: [&str; 2] = ["d1", "d2"];
/// Both places.
pub const PLACES: [&str; 2] = ["d1/a", "d2/b"];

/// What is done.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Action {
    /// An empty file.
    Create,
    /// Bytes in the middle, over two blocks.
    Write,
    /// Bytes at the end.
    Append,
    /// The name moves to the other place, over what is there.
    Rename,
    /// The other place becomes a second name.
    Link,
    /// The name goes. A file from the second place is held open until the end.
    Unlink,
    /// To a size within a block.
    Shorten,
    /// To nothing.
    Empty,
    /// Room behind the end, and a new size.
    Allocate,
    /// A hole with ragged ends.
    Punch,
    /// fsync(2).
    Fsync,
    /// fdatasync(2).
    Fdatasync,
    /// fsync(2) of the directory.
    FsyncFolder,
}

use Action::*;

/// All of them.
pub const ACTIONS: [Action; 13] = [
    Create,
    Write,
    Append,
    Rename,
    Link,
    Unlink,
    Shorten,
    Empty,
    Allocate,
    Punch,
    Fsync,
    Fdatasync,
    FsyncFolder,
];

/// An action at one of the two places.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Operation {
    /// What is done.
    pub action: Action,
    /// Where: 0 or 1.
    pub place: usize,
}

impl fmt::Debug for Operation {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{:?} {}", self.action, PLACES[self.place])
    }
}

/// All operations, by numbers.
pub fn operation(number: usize) -> Operation {
    Operation {
        action: ACTIONS[number / 2],
        place: number % 2,
    }
}

/// How many there are.
pub const OPERATIONS: usize = ACTIONS.len() * 2;

/// The bytes that step `step` writes at `offset`: no other step and no other sector has the same.
pub fn pattern(step: usize, offset: usize, len: usize) -> Vec<u8> {
    let byte = |at: usize| (1 + (step * 40 + at / 512 % 40) % 251) as u8;
    (offset..offset + len).map(byte).collect()
}

/// What a write in the middle covers.
pub const WRITTEN: std::ops::Range<usize> = 300..1700;
/// Bytes of an append.
pub const APPENDED: usize = 1500;
/// The size after [`Action::Shorten`].
pub const SHORT: usize = 1300;
/// Bytes that are allocated behind the end.
pub const ALLOCATED: usize = 2500;
/// What becomes a hole.
pub const PUNCHED: std::ops::Range<usize> = 700..3600;
