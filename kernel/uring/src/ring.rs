//! A ring: its shared memory, its state, its file.

use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::ops::Range;

use base::SharedMemory;
use mach::mem::fallible;
use mach::sync::Spin;
use mm::shared_pages::{PageBudget, SharedPages};
use mm::{MemoryObject, Window};
use sync::poll::{Events, Pollee};
use sync::{Error, Mutex, Result, WaitQueue};
use uring::{CompletionQueue, Counted, Drain, Geometry, SubmissionQueue};
use vfs::file::{File, OpenFile};

use crate::abi::Abi;
use crate::registered::Registered;
use crate::request::Request;

/// Where mmap(2) finds the completion ring, which is the same memory (IORING_OFF_CQ_RING).
const CQ_RING_OFFSET: u64 = 0x800_0000;
/// Where mmap(2) finds the entries (IORING_OFF_SQES).
pub const SQES_OFFSET: u64 = 0x1000_0000;
/// What all rings may take together.
static BUDGET: PageBudget = PageBudget::share_of_memory(16);
/// What /proc/PID/maps calls a ring's memory.
const LABEL: &str = "anon_inode:[io_uring]";

/// How a ring is to be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Setup {
    /// Its sizes.
    pub geometry: Geometry,
    /// An invalid entry does not end a submission.
    pub submits_all: bool,
    /// It takes no entries until it is enabled.
    pub is_disabled: bool,
}

/// What is locked together.
pub struct State {
    /// The completions.
    pub completions: CompletionQueue,
    /// Who waits for whom.
    pub drain: Drain<Arc<Request>>,
    /// Timeouts that count completions.
    pub counted: Counted<Arc<Request>>,
    /// Threads that wait for completions, and how many the least patient of them waits for.
    pub waiters: u32,
    /// See `waiters`.
    pub wanted: u32,
}

impl State {
    /// Whether somebody who waits has as many completions as he waits for.
    pub fn is_enough(&self, rings: &SharedPages) -> bool {
        let is_there =
            || self.completions.ready(rings) >= self.wanted || self.completions.has_overflow();
        self.waiters != 0 && is_there()
    }
}

/// A ring.
pub struct Ring {
    /// The memory of both rings.
    pub rings: Arc<SharedPages>,
    /// The memory of the entries.
    pub sqes: Arc<SharedPages>,
    /// How it was set up.
    pub setup: Setup,
    /// Who knows Linux's operations.
    pub abi: &'static dyn Abi,
    /// The submissions: one thread at a time takes them.
    pub submissions: Mutex<SubmissionQueue>,
    /// The completions, and what depends on them.
    pub state: Spin<State>,
    /// All requests under way.
    pub requests: Spin<Vec<Arc<Request>>>,
    /// What its program registered.
    pub registered: Mutex<Registered>,
    /// An eventfd that hears of completions.
    pub eventfd: Spin<Option<Arc<OpenFile>>>,
    /// Threads that wait for completions in a call.
    pub enough: WaitQueue,
    /// Who else waits for them.
    pub pollee: Pollee,
}

impl Ring {
    /// A ring without requests.
    ///
    /// Errors: `OutOfMemory`.
    pub fn new(setup: Setup, abi: &'static dyn Abi) -> Result<Arc<Self>> {
        let geometry = setup.geometry;
        let rings = SharedPages::new(geometry.ring_bytes(), &BUDGET, LABEL)?;
        let sqes = SharedPages::new(geometry.sqe_bytes(), &BUDGET, LABEL)?;
        geometry.publish(&*rings);
        Ok(fallible::arc(Self {
            rings,
            sqes,
            setup,
            abi,
            submissions: Mutex::new(SubmissionQueue::new(geometry)),
            state: Spin::new(State {
                completions: CompletionQueue::new(geometry),
                drain: Drain::default(),
                counted: Counted::default(),
                waiters: 0,
                wanted: 0,
            }),
            requests: Spin::new(Vec::new()),
            registered: Mutex::new(Registered::new(setup.is_disabled)),
            eventfd: Spin::new(None),
            enough: WaitQueue::new(),
            pollee: Pollee::new(),
        })?)
    }

    /// Tells whoever waits for completions.
    pub fn announce(&self) {
        self.enough.wake_all();
        self.tell();
    }

    /// Tells those who wait in no call of the ring's.
    pub fn tell(&self) {
        self.pollee.notify(Events::READABLE);
        let eventfd = self.eventfd.lock().clone();
        if let Some(open) = eventfd {
            self.abi.signal(&open);
        }
    }
}

/// A ring as a file; its end ends what the ring has under way.
pub struct RingFile(pub Arc<Ring>);

impl File for RingFile {
    fn ignores_seeks(&self) -> bool {
        true
    }

    fn poll(&self) -> Events {
        let ring = &self.0;
        let mut events = Events::empty();
        let is_full = || {
            let geometry = ring.setup.geometry;
            let given = ring.rings.load(uring::offset::SQ_TAIL);
            let taken = ring.rings.load(uring::offset::SQ_HEAD);
            given.wrapping_sub(taken) >= geometry.sq_entries()
        };
        if !is_full() {
            events |= Events::WRITABLE;
        }
        let state = ring.state.lock();
        if state.completions.ready(&*ring.rings) != 0 || state.completions.has_overflow() {
            events |= Events::READABLE;
        }
        events
    }

    fn pollee(&self) -> Option<&Pollee> {
        Some(&self.0.pollee)
    }

    fn close(&self, _open: &OpenFile) {
        self.0.cancel_everything();
        *self.0.registered.lock() = Registered::new(true);
        *self.0.eventfd.lock() = None;
    }

    fn may_travel(&self) -> bool {
        false
    }

    fn map(self: Arc<Self>, range: Range<u64>, is_shared: bool) -> Result<Arc<dyn MemoryObject>> {
        let bytes = range.end - range.start;
        let pages = match range.start {
            0 | CQ_RING_OFFSET => &self.0.rings,
            SQES_OFFSET => &self.0.sqes,
            _ => return Err(Error::Invalid),
        };
        match is_shared {
            true => Ok(Window::new(pages.clone(), range.start, bytes)?),
            false => Err(Error::Invalid),
        }
    }

    fn label(&self) -> String {
        String::from("anon_inode:[io_uring]")
    }

    fn as_any(&self) -> &dyn core::any::Any {
        self
    }
}
