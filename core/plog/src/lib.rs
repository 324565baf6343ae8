//! An append-only log that says what a loss of power would leave of it; a queue and a map on it.
//!
//! # Problem
//! A program has to know when an entry will still be there after a loss of power, and must never be
//! given one that was torn, is left from long ago, or was written for another place. Disks finish writes
//! in any order, keep them in a cache, and now and then lose one.
//!
//! # Idea
//! The area is two blocks that anchor the log, and a ring of blocks for entries. A *position* counts blocks and never
//! goes back; position modulo ring is the place. Each entry begins with a block, so no block
//! of a durable entry is ever written again, and carries in its checksummed header what it must be to be believed: the log's
//! id, its position, its sequence, and the *epoch*, which grows with each opening. So what is left
//! of another log, another round of the ring, another opening, or another block is not taken for an entry.
//!
//! For each append there are three points, each a prefix of the log:
//! ```text
//! submitted   its writes were handed out             Log::submitted
//! accepted    the device has completed them          Log::accepted     the buffer is the caller's again
//! durable     a flush that was sent later succeeded  Log::durable      by block::order's proofs, no other way
//! ```
//! [`Log`] does no I/O: it hands out [`Command`]s and is told how they ended. Who waits, calls back or
//! rings a bell is for the shell around it. While one flush is under way, what comes gathers for the next:
//! group commit without a timer. Where the device can force writes, what comes while anything is under way gathers for one forced
//! write, which saves the flush.
//!
//! The anchor says where the log begins (after a [`trim`](Log::trim)), and a *mark* up to which all
//! was durable. Recovery scans from the mark; the mark follows closely enough that it scans at most
//! [`Shape::scan_blocks_max`].
//!
//! | file | is about |
//! |---|---|
//! | `shape` | how an area is divided, and every bound |
//! | `entry`, `anchor` | the bytes of both |
//! | `recovery` | a new log, and the end of one that is there |
//! | `log`, `flight` | appends, commands, completions; what is not durable yet |
//! | `cursor` | reading |
//! | `queue`, `map` | what is built on a log |
//!
//! # Invariants
//! - **Prefix**: `durable <= accepted <= submitted <= end`, and after a loss of power the log is a prefix of
//!   what was appended, not shorter than what was durable.
//! - **Written once**: a block that holds a live entry is not written. Space is used again only when the anchor
//!   that gives it up is durable.
//! - **One anchor at a time**: an anchor is overwritten only when the other one is durable.
//! - **Bounded**: what is not durable is at most [`Shape::window_blocks`]; beyond that an append is
//!   refused ([`AppendError::Busy`]), as it is when the ring is full.
//! - **Fail-stop**: a write or a flush that fails ends appending, for good; what was durable stays so. Open it again
//!   to go on.
//!
//! # What a device can still do
//! A device that loses an acknowledged write is found when a later entry knew that it was durable
//! ([`OpenError::Lost`]), or when it is read. The very last entries can be lost unseen: nothing behind them tells.
//!
//! Not here: a clock, locks, buffers, chance (the id of a new log is an argument), where the area is
//! (`core/vsa`).
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;
#[cfg(test)]
extern crate std;

mod anchor;
mod area;
mod bytes;
mod cursor;
mod entry;
mod flight;
mod log;
mod map;
mod planted;
mod queue;
mod recovery;
mod shape;
#[cfg(test)]
mod tests;

pub use area::Area;
pub use cursor::{Cursor, Item, ReadError};
pub use entry::HEADER_BYTES;
pub use log::{AppendError, Command, CommandId, Log, NotDurable, Promise, Stray, Ticket};
pub use map::{Compacted, Found, KEY_MAX, Limits, MAP_HEADER_BYTES, Map, MapError};
pub use queue::Queue;
pub use recovery::{OpenError, format, open};
pub use shape::{Place, Sequence, Shape};
