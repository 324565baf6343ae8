//! What pipes, sockets and their like share: files that no directory names.

use core::sync::atomic::{AtomicU64, Ordering};

use sync::Error;

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
