//! Talking between threads through files: pipes and counters.
//!
//! Each object has one [`crate::poll::Pollee`]; what poll reports is kept in atomics, so
//! that epoll reads it without a lock. Contents are guarded by a sleeping lock, because
//! copying to or from a program may block on a page fault.
//! Not here: sockets (`unix`, `net`), terminals (`tty`), futexes (`task`).

pub mod eventfd;
pub mod fifo;
pub mod pipe;
pub mod signalfd;
pub mod splice;
pub mod timerfd;

use core::sync::atomic::{AtomicU64, Ordering};

use crate::error::Error;
use crate::signal;

/// What a write meets when nobody reads: the error, after SIGPIPE to the current thread.
pub fn broken_pipe() -> Error {
    signal::raise_broken_pipe();
    Error::BrokenPipe
}

/// A number for a pipe or socket, which programs see as its inode's; never used twice.
pub fn next_number() -> u64 {
    static LAST: AtomicU64 = AtomicU64::new(1);
    LAST.fetch_add(1, Ordering::Relaxed) + 1
}
