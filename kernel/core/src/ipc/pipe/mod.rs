//! Pipes: bytes, and pages of files, between those who write and those who read.
//!
//! What is written is copied into a ring. What splice brings from a file is the file's pages
//! themselves, on loan: a reader sees what they hold when it reads, and splice gives them to
//! a connection as they are. As on Linux, pages of a file that has become shorter stay.
//!
//! The contents are guarded by a sleeping lock. Their fill, and how many open files read and
//! write, are copied into atomics under that lock: who polls or decides whether to wait
//! looks only at those. A waiter looks after it has entered the queue, a worker changes
//! the atomics before it wakes (`sync::wait`), so no wake-up is lost.
//!
//! `contents` is what the lock guards, with `loans` and `pieces`; `flow` reads and writes,
//! `look` and `hold` serve splice and tee, `end` is the file.

mod contents;
mod end;
mod flow;
mod hold;
mod loans;
mod look;
mod pieces;

use alloc::sync::Arc;
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};

use base::PAGE_BYTES;
use bitflags::bitflags;
use mach::sync::Spin;

use self::contents::Contents;
pub use self::end::PipeEnd;
use super::next_number;
use crate::error::{Error, Result};
use crate::poll::{Events, Pollee};
use crate::sync::Mutex;
use crate::task::{Account, Capability, Charge, Counted, Credentials, current};

/// Writes up to this size are not mixed with others' (POSIX' PIPE_BUF).
pub const ATOMIC_BYTES: usize = 4096;
/// Linux's capacity of a new pipe, in pages.
const PAGES_DEFAULT: usize = 16;
/// Linux's default for /proc/sys/fs/pipe-max-size, in bytes.
const CAPACITY_MAX: usize = 1 << 20;
/// Pages that all pipes of a user may fill (Linux's default for fs.pipe-user-pages-soft): a new
/// pipe beyond has only [`PAGES_POOR`], and none may grow. Administrators may go on.
pub const USER_PAGES_MAX: u64 = 16_384;
/// Capacity of a new pipe whose user has many, in pages.
const PAGES_POOR: usize = 2;

/// The charge for a pipe of `pages` pages of the current thread's user.
///
/// Errors: `NotPermitted` beyond the limit.
fn pay(pages: usize) -> Result<Charge> {
    let uid = current().credentials.with(|who| who.user.real);
    let charge = Account::of(uid)?.charge_many(Counted::PipePages, pages as u64, user_limit());
    charge.map_err(|_| Error::NotPermitted)
}

/// What the current thread's limit is.
fn user_limit() -> u64 {
    let may_more = [Capability::SysResource, Capability::SysAdmin];
    let is_free = |who: &Arc<Credentials>| may_more.iter().any(|right| who.has(*right));
    match current().credentials.with(is_free) {
        true => u64::MAX,
        false => USER_PAGES_MAX,
    }
}

bitflags! {
    /// What an open file of a pipe may do.
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
    is_held: AtomicBool,
    /// Bytes that could be read: none while they are held.
    len: AtomicUsize,
    /// Bytes of the capacity that are taken.
    used: AtomicUsize,
    capacity: AtomicUsize,
    /// For the pages of the capacity.
    charge: Spin<Option<Charge>>,
    readers: AtomicU32,
    writers: AtomicU32,
    pub(super) reader_opens: AtomicU64,
    pub(super) writer_opens: AtomicU64,
    pub(super) pollee: Pollee,
}

impl Default for Pipe {
    fn default() -> Self {
        let charge = pay(PAGES_DEFAULT).ok();
        let pages = if charge.is_some() {
            PAGES_DEFAULT
        } else {
            PAGES_POOR
        };
        Self {
            number: next_number(),
            contents: Mutex::new(Contents::new(pages)),
            is_held: AtomicBool::new(false),
            len: AtomicUsize::new(0),
            used: AtomicUsize::new(0),
            capacity: AtomicUsize::new(pages * PAGE_BYTES),
            charge: Spin::new(charge),
            readers: AtomicU32::new(0),
            writers: AtomicU32::new(0),
            reader_opens: AtomicU64::new(0),
            writer_opens: AtomicU64::new(0),
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
            .saturating_sub(self.used.load(Ordering::SeqCst))
    }

    /// Shows how full it is to those who look without the lock.
    fn publish(&self, contents: &Contents) {
        let readable = if self.is_held() { 0 } else { contents.len() };
        self.len.store(readable, Ordering::SeqCst);
        self.used.store(contents.used(), Ordering::SeqCst);
    }

    /// How many bytes fit.
    pub fn capacity(&self) -> usize {
        self.capacity.load(Ordering::SeqCst)
    }

    /// Makes at least `bytes` fit (F_SETPIPE_SZ); returns how many do.
    ///
    /// Errors: `NotPermitted` beyond the system's limit or the user's, `Busy` if more is in it.
    pub fn set_capacity(&self, bytes: usize) -> Result<usize> {
        if bytes > CAPACITY_MAX {
            return Err(Error::NotPermitted);
        }
        let pages = bytes.div_ceil(PAGE_BYTES).max(1).next_power_of_two();
        let mut contents = self.contents.lock();
        self.pay_for(pages)?;
        contents.resize(pages)?;
        self.capacity.store(contents.capacity(), Ordering::SeqCst);
        drop(contents);
        self.pollee.notify(Events::WRITABLE);
        Ok(self.capacity())
    }

    /// Charges what `pages` are more than was paid for.
    fn pay_for(&self, pages: usize) -> Result<()> {
        let mut charge = self.charge.lock();
        match &mut *charge {
            Some(paid) => {
                let more = (pages as u64).saturating_sub(paid.amount());
                paid.grow(more, user_limit())
                    .map_err(|_| Error::NotPermitted)
            }
            None => {
                *charge = Some(pay(pages)?);
                Ok(())
            }
        }
    }

    /// Counts an open file that is gone; bytes that nobody can read any more are dropped.
    fn leave(&self, access: Access) {
        if access.contains(Access::READ) {
            self.readers.fetch_sub(1, Ordering::SeqCst);
        }
        if access.contains(Access::WRITE) {
            self.writers.fetch_sub(1, Ordering::SeqCst);
        }
        if !self.has_readers() && !self.has_writers() {
            let mut contents = self.contents.lock();
            contents.clear();
            self.publish(&contents);
        }
        self.pollee
            .notify(Events::HUP | Events::ERR | Events::READABLE | Events::WRITABLE);
    }

    fn enter(&self, access: Access) {
        if access.contains(Access::READ) {
            self.readers.fetch_add(1, Ordering::SeqCst);
            self.reader_opens.fetch_add(1, Ordering::SeqCst);
        }
        if access.contains(Access::WRITE) {
            self.writers.fetch_add(1, Ordering::SeqCst);
            self.writer_opens.fetch_add(1, Ordering::SeqCst);
        }
    }
}
