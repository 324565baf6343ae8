//! Talking between threads through files: pipes and counters.
//!
//! Each object has one [`crate::poll::Pollee`]; what poll reports is kept in atomics, so
//! that epoll reads it without a lock. Contents are guarded by a sleeping lock, because
//! copying to or from a program may block on a page fault.
//! Not here: sockets (`unix`, `net`), terminals (`tty`), futexes (`task`).

pub mod eventfd;
pub mod fifo;
pub mod pipe;
pub mod ring;

use crate::error::Error;
use crate::signal;

/// What a write meets when nobody reads: the error, after SIGPIPE to the current thread.
pub fn broken_pipe() -> Error {
    signal::raise_broken_pipe();
    Error::BrokenPipe
}
