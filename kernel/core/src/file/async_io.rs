//! Signals when a file becomes ready (fcntl(2): O_ASYNC, F_SETOWN, F_SETSIG).
//!
//! An open file may have an owner, a thread, a process or a group, who hears by a signal what
//! others learn from epoll. While O_ASYNC is set, [`AsyncIo`] observes the file's pollee; a socket's
//! also without, for the owner hears SIGURG of urgent bytes in any case (socket(7)). The
//! pollee notifies with the file's locks held, where no signal may be sent: the events are
//! noted, the object is queued, and a softirq sends. What happens again before that is one
//! signal. Nothing is allocated on the way: each object has its own link of the queue.
//!
//! Whoever named the owner must have been allowed to send it signals, by the users that it had
//! then (Linux's `sigio_perm`); else nothing is sent.
//!
//! Lock order: `settings`, then the pollee's observers, then the queue, then a link.

use alloc::sync::{Arc, Weak};
use core::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use mach::mem::fallible;
use mach::sync::Spin;
use sched::{Softirq, Work, raise, register_softirq};
use sync::poll::{Events, Observer, Sharing};
use sync::{Error, Result};

use super::{Fd, OpenFile};
use crate::signal::{Info, Origin, Signal, SignalSet, code, send_to_process, send_to_thread};
use crate::task::{Process, current, family, find_thread};

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

    /// The current process.
    pub fn of_current() -> Self {
        Self {
            kind: OwnerKind::Process,
            id: current().process.id(),
        }
    }

    /// Whether there is such a thread, process or group.
    pub fn exists(self) -> bool {
        match self.kind {
            OwnerKind::Thread => find_thread(self.id).is_some(),
            OwnerKind::Process => family::find(self.id).is_some(),
            OwnerKind::Group => family::group_members(self.id).next().is_some(),
        }
    }
}

/// The real and the effective user of whoever named an owner.
#[derive(Clone, Copy)]
struct NamedBy {
    real: u32,
    effective: u32,
}

#[derive(Clone, Copy)]
struct Settings {
    owner: Owner,
    named_by: NamedBy,
    /// F_SETSIG; without, it is a plain SIGIO.
    signal: Option<Signal>,
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
        poll: || false,
        prepare_idle: || QUEUE.lock().first.is_none(),
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
            owner: Owner::NOBODY,
            named_by: NamedBy {
                real: 0,
                effective: 0,
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
        self.settings.lock().owner
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
        settings.owner = owner;
        settings.named_by = named_by;
        settings.hears_urgent = owner.id != 0 && open.file.as_socket().is_some();
        self.observe(open, &settings);
        Ok(())
    }

    /// The signal that was chosen.
    pub fn signal(&self) -> Option<Signal> {
        self.settings.lock().signal
    }

    /// Chooses a signal that says which descriptor it is about; `None` is a plain SIGIO.
    pub fn set_signal(&self, signal: Option<Signal>) {
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
            settings.send(Info::kernel(Signal::URG));
        }
        if !settings.is_on {
            return;
        }
        for reason in Reason::of(due & (settings.interest | Events::ALWAYS)) {
            settings.send(settings.info(&reason));
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

/// Why a signal is sent (sigaction(2): `si_code` and `si_band` of SIGIO).
struct Reason {
    code: i32,
    band: Events,
}

impl Reason {
    /// Once it has hung up or failed, no more is said.
    fn of(due: Events) -> impl Iterator<Item = Self> {
        const OVER: [(Events, i32, Events); 2] = [
            (Events::HUP, code::POLL_HUP, Events::HUP.union(Events::ERR)),
            (Events::ERR, code::POLL_ERR, Events::ERR),
        ];
        const READY: [(Events, i32, Events); 3] = [
            (Events::READABLE, code::POLL_IN, Events::READABLE),
            (
                Events::WRITABLE,
                code::POLL_OUT,
                Events::WRITABLE.union(Events::WRBAND),
            ),
            (
                Events::PRI,
                code::POLL_PRI,
                Events::PRI.union(Events::RDBAND),
            ),
        ];
        let applies = move |(events, ..): &&(Events, i32, Events)| due.intersects(*events);
        let is_over = due.intersects(Events::ALWAYS);
        let over = OVER.iter().filter(applies).take(1);
        let ready = READY
            .iter()
            .filter(move |reason| !is_over && applies(reason));
        over.chain(ready)
            .map(|&(_, code, band)| Self { code, band })
    }
}

impl Settings {
    fn send(&self, info: Info) {
        match self.owner.kind {
            _ if self.owner.id == 0 => {}
            OwnerKind::Thread => {
                if let Some(thread) = find_thread(self.owner.id)
                    && self.may_signal(&thread.process)
                    && send_to_thread(&thread, info).is_err()
                {
                    // One that waits already is enough.
                    let _ = send_to_thread(&thread, Info::kernel(Signal::IO));
                }
            }
            OwnerKind::Process => {
                if let Some(process) = family::find(self.owner.id) {
                    self.send_to(&process, info);
                }
            }
            OwnerKind::Group => {
                family::group_members(self.owner.id)
                    .for_each(|process| self.send_to(&process, info));
            }
        }
    }

    /// A queue that is full still takes a plain SIGIO.
    fn send_to(&self, process: &Process, info: Info) {
        if self.may_signal(process) && send_to_process(process, info).is_err() {
            // One that waits already is enough.
            let _ = send_to_process(process, Info::kernel(Signal::IO));
        }
    }

    fn info(&self, reason: &Reason) -> Info {
        let Some(signal) = self.signal else {
            return Info::kernel(Signal::IO);
        };
        // The codes of these mean something else.
        let is_ambiguous = signal != Signal::IO && SignalSet::WITH_OWN_CODES.contains(signal);
        Info {
            signal,
            code: if is_ambiguous {
                code::SIGIO
            } else {
                reason.code
            },
            origin: Origin::File {
                fd: self.fd,
                band: reason.band.bits(),
            },
        }
    }

    fn may_signal(&self, process: &Process) -> bool {
        let NamedBy { real, effective } = self.named_by;
        effective == 0
            || process.first_thread().is_some_and(|thread| {
                thread.credentials.with(|receiver| {
                    let ids = [receiver.user.real, receiver.user.saved];
                    ids.contains(&real) || ids.contains(&effective)
                })
            })
    }
}
