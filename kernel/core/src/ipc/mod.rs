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
use crate::signal::{self, Info, Signal};
use crate::task::current;

/// What a write meets when nobody reads: the error, after SIGPIPE to the current thread.
pub fn broken_pipe() -> Error {
    // One that waits already is enough.
    let _ = signal::send_to_thread(&current().arc(), Info::kernel(Signal::PIPE));
    Error::BrokenPipe
}
