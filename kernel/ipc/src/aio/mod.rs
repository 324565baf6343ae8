//! Contexts of io_submit(2): requests under way, and the ring in which their ends stand.
//!
//! The problem: a program hands over transfers and comes later for what became of them, by a call or by
//! reading a ring that it has mapped; meanwhile it may unmap the ring, end, or become another program.
//!
//! The idea: a context *is* the memory object of its ring ([`Context`]). Its name is the address at which
//! the program has that mapped, so no table of contexts is needed: a call looks up what is mapped there.
//! The program's space holds the context, and each request under way another count of it; the last of
//! them ends it. So a process that exits leaves nothing to be taken down: pages of requests are the
//! block layer's until the device has ended them, and what ends later writes into a ring that nobody sees.
//! A fork does not give the mapping to the child.
//!
//! Invariants: `tail` is the kernel's own, and whatever the program writes into the ring moves no store of ours
//! out of it. Requests under way and ends that were not taken are fewer than the ring's places together, so
//! an end always finds one.
//!
//! Lock order: `reading` (it may sleep), then `state`; an end comes while a disk's queue is locked.
//!
//! Bounds: all contexts together are for at most [`limit`] requests (`aio-max-nr`).
//!
//! Not here: what programs' control blocks mean (`linux-files`), how a transfer begins (`vfs::file::transfer`).

mod context;
mod ring;

use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

use sync::{Error, Result};

pub use context::{Context, Reserved};
pub use ring::EVENT_BYTES;

/// Requests that all contexts are for. A figure of the machine.
static PROMISED: AtomicU64 = AtomicU64::new(0);
/// How many they may be. A setting of the machine.
static LIMIT: AtomicU64 = AtomicU64::new(65_536);

/// Requests that all contexts are for (`aio-nr`).
pub fn promised() -> u64 {
    PROMISED.load(Relaxed)
}

/// How many they may be (`aio-max-nr`).
pub fn limit() -> u64 {
    LIMIT.load(Relaxed)
}

/// Changes that.
pub fn set_limit(limit: u64) {
    LIMIT.store(limit, Relaxed);
}

/// Requests that one context is for; given back when it is dropped.
struct Promise(u64);

impl Promise {
    /// Errors: `WouldBlock` beyond the limit.
    fn new(requests: u32) -> Result<Self> {
        let requests = u64::from(requests);
        let more = |now: u64| now.checked_add(requests).filter(|sum| *sum <= limit());
        PROMISED
            .fetch_update(Relaxed, Relaxed, more)
            .map_err(|_| Error::WouldBlock)?;
        Ok(Self(requests))
    }
}

impl Drop for Promise {
    fn drop(&mut self) {
        PROMISED.fetch_sub(self.0, Relaxed);
    }
}
