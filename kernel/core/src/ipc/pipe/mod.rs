//! Pipes: a ring of bytes between those who write and those who read.
//!
//! The ring is guarded by a sleeping lock. Its fill, and how many openings read and
//! write, are copied into atomics under that lock: who polls or decides whether to wait
//! looks only at those. A waiter looks after it has entered the queue, a worker changes
//! the atomics before it wakes (`sync::wait`), so no wake-up is lost.
//!
//! `contents` is what the lock guards, `flow` reads and writes, `look` serves splice and
//! tee, `end` is the file.

mod contents;
mod end;
mod flow;
mod look;

use alloc::sync::Arc;
use core::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};

use base::PAGE_BYTES;
use bitflags::bitflags;

use self::contents::Contents;
pub use self::end::PipeEnd;
use super::next_number;
use crate::error::{Error, Result};
use crate::poll::{Events, Pollee};
use crate::sync::Mutex;

/// Writes up to this size are not mixed with others' (POSIX' PIPE_BUF).
pub const ATOMIC_BYTES: usize = 4096;
/// Linux' capacity of a new pipe, in pages.
const PAGES_DEFAULT: usize = 16;
/// Linux' default for /proc/sys/fs/pipe-max-size, in bytes.
const CAPACITY_MAX: usize = 1 << 20;

bitflags! {
    /// What an opening of a pipe may do.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub struct Access: u8 {
        /// Take bytes out.
        const READ = 1;
        /// Put bytes in.
        const WRITE = 2;
    }
}

/// The pipe itself.
pub struct Pipe {
    number: u64,
    contents: Mutex<Contents>,
    len: AtomicUsize,
    capacity: AtomicUsize,
    readers: AtomicU32,
    writers: AtomicU32,
    pub(super) reader_openings: AtomicU64,
    pub(super) writer_openings: AtomicU64,
    pub(super) pollee: Pollee,
}

impl Default for Pipe {
    fn default() -> Self {
        Self {
            number: next_number(),
            contents: Mutex::new(Contents::new(PAGES_DEFAULT)),
            len: AtomicUsize::new(0),
            capacity: AtomicUsize::new(PAGES_DEFAULT * PAGE_BYTES),
            readers: AtomicU32::new(0),
            writers: AtomicU32::new(0),
            reader_openings: AtomicU64::new(0),
            writer_openings: AtomicU64::new(0),
            pollee: Pollee::new(),
        }
    }
}

/// A new pipe: its reading and its writing end.
pub fn create() -> (Arc<PipeEnd>, Arc<PipeEnd>) {
    let pipe = Arc::new(Pipe::default());
    (
        PipeEnd::new(pipe.clone(), Access::READ),
        PipeEnd::new(pipe, Access::WRITE),
    )
}

impl Pipe {
    pub(super) fn has_readers(&self) -> bool {
        self.readers.load(Ordering::SeqCst) != 0
    }

    pub(super) fn has_writers(&self) -> bool {
        self.writers.load(Ordering::SeqCst) != 0
    }

    /// Bytes that could be read at once.
    fn len(&self) -> usize {
        self.len.load(Ordering::SeqCst)
    }

    /// Bytes that still fit.
    fn room(&self) -> usize {
        self.capacity
            .load(Ordering::SeqCst)
            .saturating_sub(self.len())
    }

    /// How many bytes fit.
    pub fn capacity(&self) -> usize {
        self.capacity.load(Ordering::SeqCst)
    }

    /// Makes at least `bytes` fit (F_SETPIPE_SZ); returns how many do.
    ///
    /// Errors: `NotPermitted` beyond the system's limit, `Busy` if more is in it.
    pub fn set_capacity(&self, bytes: usize) -> Result<usize> {
        if bytes > CAPACITY_MAX {
            return Err(Error::NotPermitted);
        }
        let pages = bytes.div_ceil(PAGE_BYTES).max(1).next_power_of_two();
        let mut contents = self.contents.lock();
        contents.resize(pages)?;
        self.capacity
            .store(contents.ring.capacity(), Ordering::SeqCst);
        drop(contents);
        self.pollee.notify(Events::WRITABLE);
        Ok(self.capacity())
    }

    /// Counts an opening that is gone; bytes that nobody can read any more are dropped.
    fn leave(&self, access: Access) {
        if access.contains(Access::READ) {
            self.readers.fetch_sub(1, Ordering::SeqCst);
        }
        if access.contains(Access::WRITE) {
            self.writers.fetch_sub(1, Ordering::SeqCst);
        }
        if !self.has_readers() && !self.has_writers() {
            self.contents.lock().clear();
            self.len.store(0, Ordering::SeqCst);
        }
        self.pollee
            .notify(Events::HUP | Events::ERR | Events::READABLE | Events::WRITABLE);
    }

    fn enter(&self, access: Access) {
        if access.contains(Access::READ) {
            self.readers.fetch_add(1, Ordering::SeqCst);
            self.reader_openings.fetch_add(1, Ordering::SeqCst);
        }
        if access.contains(Access::WRITE) {
            self.writers.fetch_add(1, Ordering::SeqCst);
            self.writer_openings.fetch_add(1, Ordering::SeqCst);
        }
    }
}
