//! Pipes: bytes, and pages of files, between those who write and those who read.
//!
//! The problem: readers, writers, splice and those who poll work at the same pipe. What is written
//! in one piece up to [`ATOMIC_BYTES`] must not be mixed with others', a packet must not run into
//! the next, what splice has looked at must not be read by another, and nobody may sleep on a
//! pipe that has what it waits for.
//!
//! The idea: what is written is copied into a ring ([`ByteRing`]). What splice brings from a file is
//! the file's pages themselves, on loan between the bytes (`loans`): a reader sees what they
//! hold when it reads, and splice gives them to a connection as they are. Both are the
//! [`Contents`](contents::Contents), guarded by one lock, which may sleep. Their fill, and how many
//! open files read and write, are copied into counts under that lock: who polls or decides
//! whether to wait looks only at those. Each operation says what others must hear of ([`News`]);
//! the caller tells them after the lock is let go.
//!
//! A waiter enters its queue, then looks at the counts, then sleeps; a worker changes the counts,
//! then tells. So no wake-up is lost. Threads are told at the edges only: readers when the
//! pipe was empty, writers when it was too full for an atomic write. Observers hear of each
//! write, because programs with edge-triggered epoll rely on that.
//!
//! Invariants: the fill that is shown is never 0 while there is something to read that nobody
//! holds; nothing is taken twice; the pages on loan are no more than the capacity has.
//!
//! `tests/model` has `loom` try the orders of reads, writes, holds and closings; `tests/random.rs`
//! compares long histories with a queue of bytes.
//!
//! Not here: queues and sleeping, who may have how many pages, files and their errors.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod contents;
mod end;
mod fill;
mod flow;
mod hold;
mod loans;
mod pieces;
mod ring;
mod transfer;

pub use contents::Borders;
pub use end::{Access, OpenedAt, Sight};
pub use fill::Pipe;
pub use flow::{News, Read, Written};
pub use ring::ByteRing;
pub use transfer::{Refusal, Sink, Source};

/// Writes up to this size are not mixed with others' (POSIX' PIPE_BUF).
pub const ATOMIC_BYTES: usize = 4096;
