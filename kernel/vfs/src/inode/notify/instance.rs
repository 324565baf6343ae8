//! One inotify descriptor: a bounded queue of events.

use alloc::collections::VecDeque;
use alloc::string::String;
use alloc::sync::{Arc, Weak};
use alloc::vec::Vec;
use core::sync::atomic::{AtomicI32, AtomicU64, Ordering};

use base::{PAGE_BYTES, VirtAddr};
use cred::{Account, Charge, Counted};
use mach::mem::fallible::{self, TryGrow};
use mach::sync::Spin;
use mm::io::Sink;
use mm::user;
use sync::poll::{Events, Pollee};
use sync::{Error, Result, Wait};

use super::Mask;
use crate::file::async_io::Owner;
use crate::file::{File, OpenFile};

/// Events queued at most (Linux's fs.inotify.max_queued_events).
pub const QUEUED_MAX: usize = 16_384;
/// Instances of one user at once (Linux's fs.inotify.max_user_instances): each event of a
/// file looks at all its watches.
pub const INSTANCES_MAX: u64 = 128;
/// All queues together take one byte of memory in this many at most.
const MEMORY_SHARE: u64 = 32;
/// Bytes of an event before its name (inotify(7)).
const HEADER_BYTES: usize = 16;
/// Bytes that could be read, stored as a C `int`.
const FIONREAD: u32 = 0x541b;
/// The watch number of the overflow event.
const NO_WATCH: i32 = -1;

/// Bytes that the events of all queues take. Memory is the machine's, and the limit is on all of
/// them.
static BYTES: AtomicU64 = AtomicU64::new(0);

/// Watches that one user may have (Linux's fs.inotify.max_user_watches): as many as take one
/// percent of memory, within Linux's bounds.
pub fn watches_max() -> u64 {
    const WATCHED_BYTES: u64 = 1024;
    let bytes = mach::mem::stats().total * PAGE_BYTES as u64;
    (bytes / 100 / WATCHED_BYTES).clamp(8192, 1 << 20)
}

#[derive(PartialEq, Eq)]
struct Event {
    watch: i32,
    mask: Mask,
    cookie: u32,
    name: Vec<u8>,
}

impl Event {
    /// `None` without memory for it, or if others take too much.
    fn new(watch: i32, mask: Mask, cookie: u32, name: &[u8]) -> Option<Self> {
        let most = mach::mem::stats().total * PAGE_BYTES as u64 / MEMORY_SHARE;
        if BYTES.load(Ordering::Relaxed) >= most {
            return None;
        }
        let name = fallible::copied(name).ok()?;
        let event = Self {
            watch,
            mask,
            cookie,
            name,
        };
        BYTES.fetch_add(event.memory_bytes(), Ordering::Relaxed);
        Some(event)
    }

    /// Events were lost.
    fn overflow() -> [u8; HEADER_BYTES] {
        header(NO_WATCH, Mask::Q_OVERFLOW, 0, 0)
    }

    fn memory_bytes(&self) -> u64 {
        (size_of::<Self>() + self.name.len()) as u64
    }

    /// Bytes in the program's buffer: the name is padded with zeroes to 16.
    fn name_bytes(&self) -> usize {
        match self.name.len() {
            0 => 0,
            len => (len + 1).next_multiple_of(HEADER_BYTES),
        }
    }

    fn bytes(&self) -> usize {
        HEADER_BYTES + self.name_bytes()
    }

    /// Copies it out as struct inotify_event.
    fn put(&self, to: &mut Sink<'_>) -> Result<usize> {
        let len = self.name_bytes();
        let mut count = to.put_whole(&header(self.watch, self.mask, self.cookie, len as u32))?;
        count += to.put_whole(&self.name)?;
        const ZEROS: [u8; HEADER_BYTES] = [0; HEADER_BYTES];
        count += to.put_whole(&ZEROS[..len - self.name.len()])?;
        Ok(count)
    }
}

impl Drop for Event {
    fn drop(&mut self) {
        BYTES.fetch_sub(self.memory_bytes(), Ordering::Relaxed);
    }
}

/// struct inotify_event without its name.
fn header(watch: i32, mask: Mask, cookie: u32, name_bytes: u32) -> [u8; HEADER_BYTES] {
    let mut header = [0; HEADER_BYTES];
    let words = [watch as u32, mask.bits(), cookie, name_bytes];
    for (bytes, word) in header.as_chunks_mut::<4>().0.iter_mut().zip(words) {
        *bytes = word.to_ne_bytes();
    }
    header
}

/// Events in their order.
#[derive(Default)]
struct Queue {
    events: VecDeque<Event>,
    /// Some were lost behind the last one; none is taken in until that was told.
    has_overflowed: bool,
}

/// What a reader gets next.
enum Next {
    Event(Event),
    Overflow,
}

impl Queue {
    /// Adds an event, or that some were lost; false if nothing changed.
    fn push(&mut self, event: Option<Event>) -> bool {
        if self.has_overflowed || event.is_some() && event.as_ref() == self.events.back() {
            return false;
        }
        let has_room = self.events.len() < QUEUED_MAX && self.events.make_room(1).is_ok();
        match event.filter(|_| has_room) {
            Some(event) => self.events.push_back(event),
            None => self.has_overflowed = true,
        }
        true
    }

    /// Takes the next event if it fits into `room` bytes.
    fn pop(&mut self, room: usize) -> Result<Option<Next>> {
        let bytes = match self.events.front() {
            Some(event) => event.bytes(),
            None if self.has_overflowed => HEADER_BYTES,
            None => return Ok(None),
        };
        if bytes > room {
            return Err(Error::Invalid);
        }
        let Some(event) = self.events.pop_front() else {
            self.has_overflowed = false;
            return Ok(Some(Next::Overflow));
        };
        if self.events.is_empty() {
            self.events = VecDeque::new();
        }
        Ok(Some(Next::Event(event)))
    }
}

impl Next {
    fn put(&self, to: &mut Sink<'_>) -> Result<usize> {
        match self {
            Self::Event(event) => event.put(to),
            Self::Overflow => to.put_whole(&Event::overflow()),
        }
    }
}

/// What inotify_init(2) makes.
pub struct Instance {
    queue: Spin<Queue>,
    last_id: AtomicI32,
    pollee: Pollee,
    me: Weak<Self>,
    account: Arc<Account>,
    _charge: Charge,
}

impl Instance {
    /// One without watches, for the current thread's user.
    ///
    /// Errors: `TooManyFiles`, `OutOfMemory`.
    pub fn new() -> Result<Arc<Self>> {
        let uid = cred::credentials().with(|who| who.user.effective);
        let account = Account::of(uid)?;
        let charge = account.charge(Counted::Notifiers, INSTANCES_MAX);
        let charge = charge.map_err(|_| Error::TooManyFiles)?;
        fallible::room_for_arc::<Self>()?;
        Ok(Arc::new_cyclic(|me| Self {
            queue: Spin::default(),
            last_id: AtomicI32::new(0),
            pollee: Pollee::new(),
            me: me.clone(),
            account,
            _charge: charge,
        }))
    }

    /// A counted reference; `None` while it is being dropped.
    pub fn arc(&self) -> Option<Arc<Self>> {
        self.me.upgrade()
    }

    /// A number for a new watch, which is not used twice, and its charge.
    pub(super) fn new_watch(&self) -> Option<(i32, Charge)> {
        let charge = self.account.charge(Counted::Watches, watches_max()).ok()?;
        let id = self
            .last_id
            .fetch_add(1, Ordering::Relaxed)
            .checked_add(1)?;
        Some((id, charge))
    }

    /// Queues an event, unless it repeats the last one.
    pub(super) fn push(&self, watch: i32, mask: Mask, cookie: u32, name: &[u8]) {
        let event = Event::new(watch, mask, cookie, name);
        let is_new = self.queue.lock().push(event);
        if is_new {
            self.pollee.notify(Events::READABLE);
        }
    }

    /// Bytes of all events that wait.
    fn waiting_bytes(&self) -> u32 {
        let queue = self.queue.lock();
        let bytes: usize = queue.events.iter().map(Event::bytes).sum();
        let overflow = if queue.has_overflowed {
            HEADER_BYTES
        } else {
            0
        };
        u32::try_from(bytes + overflow).unwrap_or(i32::MAX as u32)
    }

    fn pop(&self, room: usize) -> Result<Option<Next>> {
        self.queue.lock().pop(room)
    }
}

impl File for Instance {
    fn ignores_seeks(&self) -> bool {
        true
    }

    fn read(&self, open: &OpenFile, to: &mut Sink<'_>) -> Result<usize> {
        let first = match self.pop(to.remaining())? {
            Some(event) => event,
            None if open.is_nonblocking() => return Err(Error::WouldBlock),
            None => self
                .pollee
                .queue
                .wait(Wait::INTERRUPTIBLE, || self.pop(to.remaining()).transpose())??,
        };
        let mut count = first.put(to)?;
        while let Ok(Some(event)) = self.pop(to.remaining()) {
            count += event.put(to)?;
        }
        Ok(count)
    }

    fn poll(&self) -> Events {
        let queue = self.queue.lock();
        if queue.events.is_empty() && !queue.has_overflowed {
            Events::empty()
        } else {
            Events::READABLE
        }
    }

    fn pollee(&self) -> Option<&Pollee> {
        Some(&self.pollee)
    }

    fn async_owner(&self) -> Option<Owner> {
        Some(Owner::NOBODY)
    }

    fn ioctl(&self, _open: &OpenFile, request: u32, argument: u64) -> Result<usize> {
        match request {
            FIONREAD => {
                user::write(VirtAddr(argument), self.waiting_bytes())?;
                Ok(0)
            }
            _ => Err(Error::NotTerminal),
        }
    }

    fn close(&self, _open: &OpenFile) {
        super::unwatch_all(self);
    }

    fn label(&self) -> String {
        String::from("anon_inode:inotify")
    }

    fn as_any(&self) -> &dyn core::any::Any {
        self
    }
}
