//! Files on a `plog`.
//!
//! # Problem
//! A program that writes a record and waits until it is durable asks a file system for much more: a journal's commit, its
//! flush, and the record's own. All that it needs is one write behind the last and one flush. But it knows files: it
//! names them, renames them, cuts them, reads them from the beginning, and throws old ones away.
//!
//! # Idea
//! An entry of the log is a list of *records* (`record`): bytes of a file at an offset, a file's name and length, or that
//! a file is gone. What is written between two syncs is gathered in one buffer, and is one entry: an entry begins with a
//! block, so each costs a block at least. Memory has for each file where its bytes are, as extents (`file`); opening
//! reads the log once from its head and does again what the records say.
//!
//! ```text
//! write, rename ..──► gathered ──seal──► under way ──plog──► durable
//!                     a buffer           the same            the area, read entry by entry and checked
//! ```
//!
//! # Space
//! Each entry knows how much of it is still alive: bytes of files, and names. Those at the head of which nothing is
//! are trimmed. If that is not enough, what is alive in the oldest is gathered again at the end
//! ([`Files::compact`]), and it is trimmed when *that* is durable. Both wait for a *barrier*: what made an entry
//! useless must survive before it goes. The log is trimmed in order, so nothing that a record took back is left when
//! the record is trimmed: what says that a file is gone need not be kept.
//!
//! Room for [`RESERVED`] buffers is never taken by bytes of files, so that a full log can be compacted and files be
//! removed from it. [`Files::has_room`] is asked before the first byte of a write is gathered.
//!
//! # Invariants
//! - **Prefix**: after a loss of power the files are what they were after some operation, not before the last that was
//!   durable. An operation that does not fit into what is left of the buffer, as a long write, is several.
//! - **Alive**: an extent leads to an entry whose count contains its bytes; so it is not trimmed.
//! - **Numbers**: a file's number is never used again in a log, so what is moved late of a file that is gone
//!   does not bring it back: a file without a name record does not outlive opening.
//!
//! # Bounds
//! Memory: an extent takes about 60 bytes, an entry 32. There is at most one of the first for each write that does not
//! follow the one before, and one of the latter for each sync, until compaction gathers them.
//!
//! Not here: I/O (the caller hands the log's commands to a device, keeps sealed buffers until they are durable, and
//! reads what [`Piece::Stored`] says), descriptors, directories (a name is bytes), access rights, times.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;
#[cfg(test)]
extern crate std;

mod compaction;
mod entries;
mod file;
mod files;
mod gather;
mod reading;
mod record;
mod recovery;
#[cfg(test)]
mod tests;

pub use compaction::Compacted;
pub use file::FileNumber;
pub use files::{Error, Files, RESERVED, Sealed};
pub use reading::Piece;
pub use record::{NAME_MAX, TAG};
pub use recovery::OpenError;
