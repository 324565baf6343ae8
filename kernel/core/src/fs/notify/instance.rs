//! One inotify descriptor: a bounded queue of events.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::string::String;
use alloc::sync::{Arc, Weak};
use alloc::vec::Vec;
use core::sync::atomic::{AtomicI32, AtomicUsize, Ordering};

use mach::sync::Spin;

use super::Mask;
use crate::error::{Error, Result};
use crate::file::{File, OpenFile};
use crate::io::Sink;
use crate::poll::{Events, Pollee};
use crate::sync::Wait;

/// Events queued at most (Linux' fs.inotify.max_queued_events).
const QUEUED_MAX: usize = 16_384;
/// Watches of one instance over its life (Linux' max_user_watches is of this order).
const WATCHES_MAX: i32 = 1 << 20;
/// Instances at once (Linux' fs.inotify.max_user_instances): each event of a file looks
/// at all its watches.
const INSTANCES_MAX: usize = 128;
/// Bytes of an event before its name (inotify(7)).
const HEADER_BYTES: usize = 16;
/// The watch number of the overflow event.
const NO_WATCH: i32 = -1;

#[derive(PartialEq, Eq)]
struct Event {
    watch: i32,
    mask: Mask,
    cookie: u32,
    name: Box<[u8]>,
}

impl Event {
    /// Bytes in the program's buffer: the name is padded with zeroes to 16.
    fn name_bytes(&self) -> usize {
        match self.name.len() {
            0 => 0,
            len => (len + 1).next_multiple_of(HEADER_BYTES),
        }
    }

    /// struct inotify_event.
    fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(HEADER_BYTES + self.name_bytes());
        bytes.extend_from_slice(&self.watch.to_ne_bytes());
        bytes.extend_from_slice(&self.mask.bits().to_ne_bytes());
        bytes.extend_from_slice(&self.cookie.to_ne_bytes());
        bytes.extend_from_slice(&(self.name_bytes() as u32).to_ne_bytes());
        bytes.extend_from_slice(&self.name);
        bytes.resize(HEADER_BYTES + self.name_bytes(), 0);
        bytes
    }
}

static INSTANCES: AtomicUsize = AtomicUsize::new(0);

/// What inotify_init(2) makes.
pub struct Instance {
    events: Spin<VecDeque<Event>>,
    last_id: AtomicI32,
    pollee: Pollee,
    me: Weak<Self>,
}

impl Instance {
    /// One without watches.
    ///
    /// Errors: `TooManyFiles`.
    pub fn new() -> Result<Arc<Self>> {
        let instance = Arc::new_cyclic(|me| Self {
            events: Spin::default(),
            last_id: AtomicI32::new(0),
            pollee: Pollee::new(),
            me: me.clone(),
        });
        // The drop of one too many counts it down again.
        match INSTANCES.fetch_add(1, Ordering::Relaxed) < INSTANCES_MAX {
            true => Ok(instance),
            false => Err(Error::TooManyFiles),
        }
    }

    /// A counted reference; `None` while it is being dropped.
    pub fn arc(&self) -> Option<Arc<Self>> {
        self.me.upgrade()
    }

    /// A number for a new watch; they are not used twice.
    pub(super) fn next_id(&self) -> Option<i32> {
        let id = self.last_id.fetch_add(1, Ordering::Relaxed) + 1;
        (id <= WATCHES_MAX).then_some(id)
    }

    /// Queues an event, unless it repeats the last one.
    pub(super) fn push(&self, watch: i32, mask: Mask, cookie: u32, name: &[u8]) {
        let event = Event {
            watch,
            mask,
            cookie,
            name: name.into(),
        };
        {
            let mut events = self.events.lock();
            if events.back() == Some(&event) {
                return;
            }
            match events.len() {
                0..QUEUED_MAX => events.push_back(event),
                QUEUED_MAX => events.push_back(Event {
                    watch: NO_WATCH,
                    mask: Mask::Q_OVERFLOW,
                    cookie: 0,
                    name: Box::default(),
                }),
                _ => return,
            }
        }
        self.pollee.notify(Events::READABLE);
    }

    /// Takes the next event if it fits into `room` bytes.
    fn pop(&self, room: usize) -> Result<Option<Event>> {
        let mut events = self.events.lock();
        match events.front() {
            None => Ok(None),
            Some(event) if HEADER_BYTES + event.name_bytes() > room => Err(Error::Invalid),
            Some(_) => Ok(events.pop_front()),
        }
    }
}

impl File for Instance {
    fn read(&self, open: &OpenFile, to: &mut Sink<'_>) -> Result<usize> {
        let first = match self.pop(to.remaining())? {
            Some(event) => event,
            None if open.is_nonblocking() => return Err(Error::WouldBlock),
            None => self
                .pollee
                .queue
                .wait(Wait::INTERRUPTIBLE, || self.pop(to.remaining()).transpose())??,
        };
        let mut count = to.put(&first.encode())?;
        while let Ok(Some(event)) = self.pop(to.remaining()) {
            count += to.put(&event.encode())?;
        }
        Ok(count)
    }

    fn poll(&self) -> Events {
        if self.events.lock().is_empty() {
            Events::empty()
        } else {
            Events::READABLE
        }
    }

    fn pollee(&self) -> Option<&Pollee> {
        Some(&self.pollee)
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
