//! The program's host, and its lock.

use std::ffi::c_int;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::sync::{Mutex, MutexGuard, PoisonError};

use base::Instant;
use posix::{Errno, Heirloom, Host, Link, Result};
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

    fn take_new_flows(&mut self, is_taker: bool) {
        // If the link is gone, the next wait finds that.
        self.0.take_new_flows(is_taker).ok();
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
    /// In a child: one is opened when a socket is used that it may have.
    Inherited,
    Open(Box<Host<Port>>),
}

/// What the lock guards.
pub struct State {
    hosting: Hosting,
    /// Sockets of the parent's that are opened again when they are used.
    heirlooms: Vec<Heirloom>,
    pub bells: Bells,
    clock: Clock,
}

static STATE: Mutex<State> = Mutex::new(State {
    hosting: Hosting::Unopened,
    heirlooms: Vec::new(),
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
            let revocation = doorbell.revocation().map(|file| file.as_raw_fd());
            keeper::start(doorbell.as_fd().as_raw_fd(), revocation);
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

    /// In a child: the link's queue and its packet memory are the parent's. The socket is closed, so that the queue is
    /// free when the parent ends; the memory is left as it is.
    pub fn become_a_child(&mut self) {
        if let Hosting::Open(mut host) = std::mem::replace(&mut self.hosting, Hosting::Refused) {
            if config::get().is_some_and(|config| !config.is_card()) {
                self.heirlooms.extend(host.heirlooms());
            }
            numbers::become_a_child();
            let (port, station) = host.into_parts();
            std::mem::forget(station);
            drop(port);
        }
        numbers::inherit_by(claim);
        for number in self.heirlooms.iter().flat_map(|heirloom| &heirloom.numbers) {
            self.hosting = Hosting::Inherited;
            numbers::set(number.cast_signed(), Whose::Inherited);
        }
        self.bells = Bells::new();
    }

    /// A number that nobody has used yet is none of the child's.
    pub fn renounce(&mut self, number: c_int) {
        for heirloom in &mut self.heirlooms {
            heirloom
                .numbers
                .retain(|other| other.cast_signed() != number);
        }
        self.heirlooms
            .retain(|heirloom| !heirloom.numbers.is_empty());
    }

    /// The host of a child, opened now if it was not yet.
    fn own_host(&mut self) -> Option<&mut Host<Port>> {
        if let (Hosting::Inherited, Some(config)) = (&self.hosting, config::get()) {
            self.hosting = open(&config::further(config));
            if let Hosting::Open(host) = &mut self.hosting {
                host.share_as_child();
            }
        }
        self.host()
    }

    /// Opens the socket of a number again, and with it all others that were not: peers are told apart by queues,
    /// not by ports. But of several with one name that one only.
    fn take_over(&mut self, number: c_int) {
        let mut heirlooms = std::mem::take(&mut self.heirlooms);
        let is_asked = |heirloom: &Heirloom| heirloom.numbers.contains(&number.cast_unsigned());
        heirlooms.sort_by_key(|heirloom| !is_asked(heirloom));
        let mut opened: Vec<Heirloom> = Vec::new();
        let Some(host) = self.own_host() else {
            return numbers::disinherit();
        };
        let mut left = Vec::new();
        for heirloom in heirlooms {
            if opened.iter().any(|other| other.is_named_as(&heirloom)) {
                left.push(heirloom);
                continue;
            }
            let whose = match host.inherit(&heirloom) {
                Ok(()) => Whose::Socket,
                Err(_) => Whose::Parent,
            };
            let numbers = heirloom.numbers.iter();
            numbers.for_each(|number| numbers::set(number.cast_signed(), whose));
            opened.push(heirloom);
        }
        self.heirlooms = left;
    }
}

/// A number that was inherited is used: it is ours from now on, or the parent's alone.
pub fn claim(number: c_int) {
    let mut state = lock();
    if numbers::seen(number) == Whose::Inherited {
        state.take_over(number);
    }
}

/// The program is about to lose rights that a queue needs.
pub fn claim_while_we_may() {
    let mut state = lock();
    if let Hosting::Inherited = state.hosting
        && let Some(number) = state.heirlooms.iter().flat_map(|it| &it.numbers).next()
    {
        let number = number.cast_signed();
        state.take_over(number);
    }
}

/// The descriptor that frames are waited for by.
pub fn descriptor(host: &Host<Port>) -> c_int {
    host.link().as_fd().as_raw_fd()
}
