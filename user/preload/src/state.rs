//! The program's host, and its lock.

use std::ffi::c_int;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::sync::{Mutex, MutexGuard, PoisonError};

use base::Instant;
use posix::{Errno, Host, Link, Result};
use rt::{AnyIo, Clock};
use sietch_io::{Doorbell, Queue, QueueConfig};

use crate::numbers::{self, Whose};
use crate::patience::Bells;
use crate::{config, keeper};

/// The link's doorbell.
pub struct Port(Doorbell);

impl Link for Port {
    type Io = AnyIo;

    #[inline]
    fn kick(&mut self, _: &AnyIo) -> io::Result<()> {
        self.0.kick()
    }
}

impl AsFd for Port {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Whether there is a host.
enum Hosting {
    /// No socket was asked for yet.
    Unopened,
    /// There can be none: it could not be opened, or is the parent's.
    Refused,
    Open(Box<Host<Port>>),
}

/// What the lock guards.
pub struct State {
    hosting: Hosting,
    pub bells: Bells,
    clock: Clock,
}

static STATE: Mutex<State> = Mutex::new(State {
    hosting: Hosting::Unopened,
    bells: Bells::new(),
    clock: Clock::new(),
});

/// The time, for who has not got the lock.
pub fn now() -> Instant {
    Instant::from_nanos(rt::monotonic_nanos())
}

/// The lock, whatever there is behind it.
pub fn lock() -> MutexGuard<'static, State> {
    STATE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The same, unless somebody has it.
pub fn try_lock() -> Option<MutexGuard<'static, State>> {
    STATE.try_lock().ok()
}

/// The right to use the host. Given back, it tells those who wait what has happened.
pub struct Held(MutexGuard<'static, State>);

impl Held {
    /// Waits for it.
    ///
    /// Errors: `NETWORK_DOWN` without a host.
    #[inline]
    pub fn wait() -> Result<Self> {
        let state = lock();
        match state.hosting {
            Hosting::Open(_) => Ok(Self(state).at_this_time()),
            _ => Err(Errno::NETWORK_DOWN),
        }
    }

    /// The same, opening the host if nobody has yet; `None` if there is none.
    pub fn open() -> Option<Self> {
        let config = config::get()?;
        let mut state = lock();
        if let Hosting::Unopened = state.hosting {
            state.hosting = open(config);
        }
        match state.hosting {
            Hosting::Open(_) => Some(Self(state).at_this_time()),
            _ => None,
        }
    }

    #[inline]
    fn at_this_time(mut self) -> Self {
        let now = self.now();
        self.host().set_now(now);
        self
    }

    /// The time, by a clock that costs little.
    #[inline]
    pub fn now(&mut self) -> Instant {
        Instant::from_nanos(self.0.clock.now())
    }

    /// The host.
    #[inline]
    pub fn host(&mut self) -> &mut Host<Port> {
        self.parts().0
    }

    /// The host, and the bells of who waits.
    #[inline]
    pub fn parts(&mut self) -> (&mut Host<Port>, &mut Bells) {
        let State { hosting, bells, .. } = &mut *self.0;
        match hosting {
            Hosting::Open(host) => (host, bells),
            _ => unreachable!("made for an open host, which is closed by nobody who lets go of it"),
        }
    }
}

impl Drop for Held {
    #[inline]
    fn drop(&mut self) {
        let (host, bells) = self.parts();
        if host.take_news() {
            bells.ring();
        }
    }
}

fn open(config: &QueueConfig) -> Hosting {
    match Queue::open(config) {
        Ok(queue) => {
            let (doorbell, station) = queue.into_parts();
            for descriptor in doorbell.descriptors() {
                numbers::set(descriptor.as_raw_fd(), Whose::Library);
            }
            keeper::start(doorbell.as_fd().as_raw_fd());
            let host = Host::new(Port(doorbell), station, config.address, config.ring_entries);
            Hosting::Open(Box::new(host))
        }
        Err(error) => {
            let link = &config.link;
            eprintln!("libsietch: {link}: {error}; the kernel's sockets are used.");
            Hosting::Refused
        }
    }
}

impl State {
    /// The host, if there is one.
    pub fn host(&mut self) -> Option<&mut Host<Port>> {
        match &mut self.hosting {
            Hosting::Open(host) => Some(host),
            _ => None,
        }
    }

    /// In a child: the link and its packet memory are the parent's. Its socket is closed, so that the link is free
    /// when the parent ends; the memory is left as it is, for a child's copy of it costs.
    pub fn become_a_child(&mut self) {
        if let Hosting::Open(host) = std::mem::replace(&mut self.hosting, Hosting::Refused) {
            let (port, station) = host.into_parts();
            std::mem::forget(station);
            drop(port);
        }
        self.bells = Bells::new();
    }
}

/// The descriptor that frames are waited for by.
pub fn descriptor(host: &Host<Port>) -> c_int {
    host.link().as_fd().as_raw_fd()
}
