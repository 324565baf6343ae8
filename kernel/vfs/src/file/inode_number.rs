//! Inode numbers of what no directory names: pipes, sockets and their like.

use core::sync::atomic::{AtomicU64, Ordering};

/// A number for a pipe or socket, which programs see as its inode's; never used twice.
pub fn next_number() -> u64 {
    /// The last number given: pipes and sockets of all programs share one device.
    static LAST: AtomicU64 = AtomicU64::new(1);
    LAST.fetch_add(1, Ordering::Relaxed) + 1
}

/// A number for a namespace, likewise.
pub fn next_namespace_number() -> u64 {
    /// Linux's first number of a namespace. Counted for the whole machine, so that no two are
    /// equal.
    static NEXT: AtomicU64 = AtomicU64::new(0xf000_0000);
    NEXT.fetch_add(1, Ordering::Relaxed)
}
