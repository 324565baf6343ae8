//! One request: from its entry to its last completion.

use alloc::sync::{Arc, Weak};
use core::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, AtomicUsize, Ordering};

use base::Instant;
use mach::mem::fallible;
use mach::sync::Spin;
use sched::timer::{Expire, TimerId};
use sync::poll::{Events, Observer};
use sync::{Error, Result};
use uring::{Facts, Link, Operation, Sqe, SqeFlags};
use vfs::file::OpenFile;

use crate::ring::Ring;
use crate::submitter::Submitter;

/// Bytes that a request costs, with what lies beside it; rounded up.
const REQUEST_BYTES: u64 = 1024;
/// All requests together have at most this share of memory.
const MEMORY_SHARE: u64 = 16;

/// Requests that exist. A figure of the machine, limited as a whole: who has many rings has no
/// more than others.
static REQUESTS: AtomicUsize = AtomicUsize::new(0);

/// How many there may be.
pub fn most() -> usize {
    let bytes = mach::mem::total_frames() * base::PAGE_BYTES as u64;
    (bytes / MEMORY_SHARE / REQUEST_BYTES) as usize
}

/// Why a request is to end, chosen once.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Ending {
    /// It is not.
    None,
    /// Somebody cancelled it, or what it is linked to failed.
    Cancelled,
    /// Its time is over.
    Expired,
    /// It has seen as many completions as it waited for.
    Counted,
    /// Its entry asks for nothing that there is.
    Invalid,
}

impl Ending {
    fn from_number(number: u8) -> Self {
        match number {
            1 => Self::Cancelled,
            2 => Self::Expired,
            3 => Self::Counted,
            4 => Self::Invalid,
            _ => Self::None,
        }
    }
}

/// What only the submitter changes.
#[derive(Default)]
pub struct Progress {
    /// The file that it works on.
    pub open: Option<Arc<OpenFile>>,
    /// It was tried.
    pub is_begun: bool,
    /// It observes the file.
    pub is_observing: bool,
    /// It was tried at least once.
    pub is_tried: bool,
    /// Bytes moved by earlier tries.
    pub done: usize,
    /// What comes after it.
    pub next: Option<Arc<Request>>,
    /// What limits its time.
    pub limit: Option<Arc<Request>>,
    /// For a limit: what it limits.
    pub limited: Weak<Request>,
}

/// A request.
pub struct Request {
    /// Whose it is.
    pub ring: Arc<Ring>,
    /// Who does it.
    pub submitter: Arc<Submitter>,
    /// What is to be done; a no-op if the entry is invalid.
    pub operation: Operation,
    /// Its entry.
    pub sqe: Sqe,
    /// It ends a chain (or is alone).
    pub is_last: AtomicBool,
    /// What the program calls it now.
    pub user_data: AtomicU64,
    /// The poll's events now, if they were changed.
    pub events: AtomicU64,
    /// Where it stands in the ring's table.
    pub index: AtomicUsize,
    /// It is in its submitter's queue.
    pub is_queued: AtomicBool,
    is_started: AtomicBool,
    is_finished: AtomicBool,
    ending: AtomicU8,
    /// How far it is.
    pub progress: Spin<Progress>,
    /// When its time is over.
    pub timer: Spin<Option<TimerId>>,
    me: Weak<Request>,
}

impl Request {
    /// A request of `ring` by `submitter`, who has room for it.
    ///
    /// Errors: `OutOfMemory`; too many are under way.
    pub fn new(ring: &Arc<Ring>, submitter: &Arc<Submitter>, sqe: Sqe) -> Result<Arc<Self>> {
        let more = |now: usize| (now < most()).then_some(now + 1);
        REQUESTS
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, more)
            .map_err(|_| Error::OutOfMemory)?;
        let room = fallible::room_for_arc::<Self>();
        if let Err(error) = room {
            REQUESTS.fetch_sub(1, Ordering::Relaxed);
            return Err(error.into());
        }
        let decoded = uring::decode(&sqe);
        let ending = match decoded {
            Ok(_) => Ending::None,
            Err(_) => Ending::Invalid,
        };
        submitter.adopt();
        Ok(Arc::new_cyclic(|me| Self {
            ring: ring.clone(),
            submitter: submitter.clone(),
            operation: decoded.unwrap_or(Operation::Nop),
            sqe,
            is_last: AtomicBool::new(false),
            user_data: AtomicU64::new(sqe.user_data),
            events: AtomicU64::new(u64::MAX),
            index: AtomicUsize::new(0),
            is_queued: AtomicBool::new(false),
            is_started: AtomicBool::new(false),
            is_finished: AtomicBool::new(false),
            ending: AtomicU8::new(ending as u8),
            progress: Spin::default(),
            timer: Spin::new(None),
            me: me.clone(),
        }))
    }

    /// A counted reference.
    pub fn arc(&self) -> Option<Arc<Self>> {
        self.me.upgrade()
    }

    /// Itself as an observer of files.
    pub fn observer(&self) -> Weak<dyn Observer> {
        self.me.clone()
    }

    /// How it ties the next one to itself.
    pub fn link(&self) -> Link {
        self.sqe.link()
    }

    /// Whether its entry says so.
    pub fn has(&self, flag: SqeFlags) -> bool {
        SqeFlags::from_bits_truncate(self.sqe.flags).contains(flag)
    }

    /// Why it is to end.
    pub fn ending(&self) -> Ending {
        Ending::from_number(self.ending.load(Ordering::SeqCst))
    }

    /// Notes why it is to end, unless somebody said so before; whether this did it.
    pub fn mark(&self, why: Ending) -> bool {
        let none = Ending::None as u8;
        let chosen =
            self.ending
                .compare_exchange(none, why as u8, Ordering::SeqCst, Ordering::SeqCst);
        chosen.is_ok() && !self.is_finished()
    }

    /// The same; its submitter ends it, if its turn has come.
    pub fn end(&self, why: Ending) -> bool {
        let is_marked = self.mark(why);
        if is_marked && self.is_started() {
            self.wake();
        }
        is_marked
    }

    /// Its turn has come.
    pub fn start(&self) {
        self.is_started.store(true, Ordering::SeqCst);
        self.wake();
    }

    /// Its turn has come with what it limits; there is nothing to do yet.
    pub fn set_started(&self) {
        self.is_started.store(true, Ordering::SeqCst);
    }

    /// Whether its turn has come: nothing that it is linked to, and no drain, is before it.
    pub fn is_started(&self) -> bool {
        self.is_started.load(Ordering::SeqCst)
    }

    /// Its submitter shall look at it.
    pub fn wake(&self) {
        if let Some(me) = self.arc() {
            self.submitter.push(me);
        }
    }

    /// Whether it is over.
    pub fn is_finished(&self) -> bool {
        self.is_finished.load(Ordering::SeqCst)
    }

    /// It is over; false if it was before.
    pub fn set_finished(&self) -> bool {
        !self.is_finished.swap(true, Ordering::SeqCst)
    }

    /// What a cancellation looks at.
    pub fn facts(&self) -> Facts {
        let file = self.progress.lock().open.as_ref().map(identity);
        Facts {
            user_data: self.user_data.load(Ordering::Relaxed),
            file,
            opcode: self.sqe.opcode,
        }
    }
}

/// What stands for an open file's object.
pub fn identity(open: &Arc<OpenFile>) -> usize {
    Arc::as_ptr(&open.file).addr()
}

impl Drop for Request {
    fn drop(&mut self) {
        self.submitter.release();
        REQUESTS.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Observer for Request {
    fn notify(self: Arc<Self>, _events: Events) -> bool {
        let submitter = self.submitter.clone();
        submitter.push(self);
        true
    }
}

impl Expire for Request {
    fn expire(self: Arc<Self>, _now: Instant) {
        *self.timer.lock() = None;
        self.end(Ending::Expired);
    }
}
