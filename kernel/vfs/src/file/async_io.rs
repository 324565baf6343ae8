//! Signals when a file becomes ready (fcntl(2): O_ASYNC, F_SETOWN, F_SETSIG).
//!
//! An open file may have an owner, a thread, a process or a group, who hears by a signal what
//! others learn from epoll. While O_ASYNC is set, [`AsyncIo`] observes the file's pollee; a socket's
//! also without, for the owner hears SIGURG of urgent bytes in any case (socket(7)). The
//! pollee notifies with the file's locks held, where no signal may be sent: the events are
//! noted, the object is queued, and a softirq sends. What happens again before that is one
//! signal. Nothing is allocated on the way: each object has its own link of the queue.
//!
//! Not here: which signal says what, and whether it may be sent ([`super::signals`]).
//!
//! Lock order: `settings`, then the pollee's observers, then the queue, then a link.

use alloc::sync::{Arc, Weak};
use core::num::NonZeroU32;
use core::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use mach::mem::fallible;
use mach::sync::Spin;
use sched::{Softirq, Work, raise, register_softirq};
use sync::poll::{Events, Observer, Sharing};
use sync::{Error, Result};

use super::signals::signals;
use super::{Fd, OpenFile};

/// Openings whose signals are sent at a time.
const BATCH: usize = 64;

/// Whom an owner's number means.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OwnerKind {
    /// A thread.
    Thread,
    /// A process.
    Process,
    /// All processes of a group.
    Group,
}

/// Who gets the signals.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Owner {
    /// What the number means.
    pub kind: OwnerKind,
    /// The number; 0 is nobody.
    pub id: u32,
}

impl Owner {
    /// As long as nobody was named.
    pub const NOBODY: Self = Self {
        kind: OwnerKind::Thread,
        id: 0,
    };

    /// Whether there is such a thread, process or group.
    pub fn exists(self) -> bool {
        signals().exists(self)
    }
}

/// The real and the effective user of whoever named an owner.
#[derive(Clone, Copy)]
pub struct NamedBy {
    /// The real one.
    pub real: u32,
    /// The effective one.
    pub effective: u32,
}

/// To whom a signal goes, and in whose name.
#[derive(Clone, Copy)]
pub struct FileOwner {
    /// Who gets it.
    pub owner: Owner,
    /// Whoever named the owner must be allowed to send it signals.
    pub named_by: NamedBy,
}

/// What an owner hears of a file.
#[derive(Clone, Copy)]
pub enum IoSignal {
    /// Urgent bytes came.
    Urgent,
    /// The file is ready.
    Ready {
        /// In which ways.
        events: Events,
        /// The signal that was chosen, which says more; `None` for a plain SIGIO.
        signal: Option<NonZeroU32>,
        /// The descriptor through which it was asked for.
        fd: Fd,
    },
}

#[derive(Clone, Copy)]
struct Settings {
    to: FileOwner,
    /// F_SETSIG; without, it is a plain SIGIO.
    signal: Option<NonZeroU32>,
    /// O_ASYNC, and the descriptor through which it was set.
    is_on: bool,
    fd: Fd,
    /// What matters to the open file: its pollee may be that of both ends.
    interest: Events,
    /// It is a socket with an owner.
    hears_urgent: bool,
}

/// What an open file needs to send signals; made when it first does.
pub struct AsyncIo {
    settings: Spin<Settings>,
    /// Events that were not signalled yet.
    due: AtomicU32,
    is_queued: AtomicBool,
    next: Spin<Option<Arc<Self>>>,
}

/// Openings with signals to send, first come, first served.
struct Queue {
    first: Option<Arc<AsyncIo>>,
    last: Option<Arc<AsyncIo>>,
}

/// Signals to send from where locks forbid it; one softirq sends them all.
static QUEUE: Spin<Queue> = Spin::new(Queue {
    first: None,
    last: None,
});

impl Queue {
    fn push(&mut self, new: Arc<AsyncIo>) {
        match &self.last {
            Some(last) => *last.next.lock() = Some(new.clone()),
            None => self.first = Some(new.clone()),
        }
        self.last = Some(new);
    }

    fn pop(&mut self) -> Option<Arc<AsyncIo>> {
        let first = self.first.take()?;
        self.first = first.next.lock().take();
        if self.first.is_none() {
            self.last = None;
        }
        Some(first)
    }
}

/// Connects the softirq; once at boot.
pub fn init() {
    let work = Work {
        run: send_due,
        // Who queues raises.
        look: None,
    };
    register_softirq(Softirq::AsyncIo, work);
}

fn send_due() {
    for _ in 0..BATCH {
        let Some(next) = QUEUE.lock().pop() else {
            return;
        };
        next.is_queued.store(false, Ordering::SeqCst);
        next.send();
    }
    raise(Softirq::AsyncIo);
}

impl AsyncIo {
    /// Without an owner.
    ///
    /// Errors: `OutOfMemory`.
    pub(super) fn new() -> Result<Arc<Self>> {
        let settings = Settings {
            to: FileOwner {
                owner: Owner::NOBODY,
                named_by: NamedBy {
                    real: 0,
                    effective: 0,
                },
            },
            signal: None,
            is_on: false,
            fd: 0,
            interest: Events::empty(),
            hears_urgent: false,
        };
        Ok(fallible::arc(Self {
            settings: Spin::new(settings),
            due: AtomicU32::new(0),
            is_queued: AtomicBool::new(false),
            next: Spin::new(None),
        })?)
    }

    /// Who gets the signals.
    pub fn owner(&self) -> Owner {
        self.settings.lock().to.owner
    }

    /// The current thread says who gets the signals.
    ///
    /// Errors: `NoSuchProcess`.
    pub(super) fn set_owner(self: &Arc<Self>, open: &OpenFile, owner: Owner) -> Result<()> {
        if owner.id != 0 && !owner.exists() {
            return Err(Error::NoSuchProcess);
        }
        let named_by = cred::credentials().with(|who| NamedBy {
            real: who.user.real,
            effective: who.user.effective,
        });
        let mut settings = self.settings.lock();
        settings.to = FileOwner { owner, named_by };
        settings.hears_urgent = owner.id != 0 && open.file.as_socket().is_some();
        self.observe(open, &settings);
        Ok(())
    }

    /// The number of the signal that was chosen.
    pub fn signal(&self) -> Option<NonZeroU32> {
        self.settings.lock().signal
    }

    /// Chooses a signal that says which descriptor it is about; `None` is a plain SIGIO.
    pub fn set_signal(&self, signal: Option<NonZeroU32>) {
        self.settings.lock().signal = signal;
    }

    /// O_ASYNC was set or cleared through `fd`.
    pub(super) fn turn(self: &Arc<Self>, open: &OpenFile, on: bool, fd: Fd) {
        let mut settings = self.settings.lock();
        if settings.is_on == on {
            return;
        }
        settings.is_on = on;
        settings.fd = fd;
        settings.interest = interest(open);
        self.observe(open, &settings);
    }

    /// The open file is going.
    pub(super) fn end(self: &Arc<Self>, open: &OpenFile) {
        let mut settings = self.settings.lock();
        settings.is_on = false;
        settings.hears_urgent = false;
        self.observe(open, &settings);
    }

    /// Observes what `settings` want to hear of, and nothing else.
    fn observe(self: &Arc<Self>, open: &OpenFile, settings: &Settings) {
        let Some(pollee) = open.file.pollee() else {
            return;
        };
        let this: Arc<dyn Observer> = self.clone();
        let this: Weak<dyn Observer> = Arc::downgrade(&this);
        pollee.forget(&this);
        let mut wanted = Events::empty();
        if settings.is_on {
            wanted |= settings.interest;
        }
        if settings.hears_urgent {
            wanted |= Events::PRI;
        }
        if !wanted.is_empty() {
            pollee.observe(this, wanted, Sharing::Shared);
        }
    }

    fn send(&self) {
        let settings = *self.settings.lock();
        let due = Events::from_bits_truncate(self.due.swap(0, Ordering::SeqCst));
        if settings.hears_urgent && due.contains(Events::PRI) {
            signals().send(&settings.to, IoSignal::Urgent);
        }
        let events = due & (settings.interest | Events::ALWAYS);
        if settings.is_on && !events.is_empty() {
            let (signal, fd) = (settings.signal, settings.fd);
            let ready = IoSignal::Ready { events, signal, fd };
            signals().send(&settings.to, ready);
        }
    }
}

fn interest(open: &OpenFile) -> Events {
    let mut interest = Events::empty();
    if open.is_readable() {
        interest |= Events::READABLE | Events::PRI;
    }
    if open.is_writable() {
        interest |= Events::WRITABLE;
    }
    interest
}

impl Observer for AsyncIo {
    fn notify(self: Arc<Self>, events: Events) -> bool {
        self.due.fetch_or(events.bits(), Ordering::SeqCst);
        if !self.is_queued.swap(true, Ordering::SeqCst) {
            QUEUE.lock().push(self);
            raise(Softirq::AsyncIo);
        }
        true
    }
}
