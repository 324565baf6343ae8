//! Rings of stack samples that a host reads from outside, what is written in them, and when.
//!
//! The problem: a profiler must take samples where nothing may wait (an NMI handler), and
//! bring them out of a machine that runs programs which know nothing of it.
//!
//! The idea: each producer writes into a ring of its own and never looks whether
//! anybody reads. New records overwrite the oldest ones. The host copies the ring's
//! memory from outside while the machine runs, throws away what was overwritten
//! meanwhile, and knows from the records' numbers exactly how many it missed.
//!
//! A ring is a slice of 64-bit words: [`HEADER_WORDS`] of header, then the data. Positions
//! count words since the start and never wrap; a position's place is its remainder by the
//! capacity. A record is a run of words, which may cross the end of the data; its first
//! word holds its length, so from one record the next is found.
//!
//! Invariants:
//! - **One producer**: records are begun and finished by one flow of control at a time.
//! - **Boundaries**: `tail` and `head` are positions of records' first words, and all
//!   records in `[tail, head)` are whole. `tail` moves before the words that it leaves are
//!   overwritten, `head` moves after the words that it passes are written.
//! - **Numbers**: the n-th record of a ring has the number n, counted from 0.
//!
//! Samples may be raised by a performance counter: [`counter`].
//!
//! Not here: timers, how stacks are walked (`mach`), names for addresses
//! (the command `sietch`).

#![no_std]
#![forbid(unsafe_code)]

pub mod counter;
mod cursor;
mod decode;
mod mapping;
mod ring;
mod stack;

#[cfg(test)]
extern crate std;

#[cfg(test)]
mod tests;

pub use cursor::{Cursor, Header};
pub use decode::{Event, decode};
pub use mapping::{Mapping, PATH_BYTES_MAX, Path, write_mapping};
pub use ring::{Draft, HEADER_WORDS, Kind, Ring, Stamp};
pub use stack::{
    KERNEL_FRAMES_MAX, STACK_RECORD_WORDS_MAX, STACK_WORDS_MAX, Stack, StackDraft, UserFrame, Who,
};
