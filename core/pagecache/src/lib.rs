//! What a page cache decides, apart from pages, locks and disks.
//!
//! # Problem
//! A cache of a file's pages has to know at any moment which of them differ from what is kept
//! below, to write those in long runs, to read ahead of who reads in order and of nobody else, to
//! make who dirties memory wait before there is too much of it, and to say exactly once to each
//! who has the file open that a write failed.
//!
//! # Idea
//! - [`Index`]: the pages of one file, with marks, 64 to a word: runs are found by counting bits.
//! - [`Streams`]: the few places at which a file was last read on, and how much each has earned.
//! - [`DirtyLimits`]: how much may be dirty before somebody writes it back, or waits.
//! - [`Failures`]: failed write-backs as a sequence, of which each open file knows how far it heard.
//!
//! Not here: pages themselves, who may change them when (`kernel/pagecache`).
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;
#[cfg(test)]
extern crate std;

mod failures;
mod index;
mod limits;
mod streams;

pub use failures::Failures;
pub use index::{CHUNK_PAGES, Index, Mark, Slot};
pub use limits::{DirtyLimits, Pressure, Threshold};
pub use streams::{AHEAD_MAX_PAGES, Streams};
