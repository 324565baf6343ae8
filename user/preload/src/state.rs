//! The program's hosts, and their locks.
//!
//! Most programs have one, the *first*. A thread that waits for connections of its own may have a further one
//! (`shards`), whose state has its host and its bells and nothing else: what is the program's as a whole is the first's.
//!
//! Lock order: the first's state, then the further ones' by their places.

mod backlog;
mod children;
mod left;
mod moving;

use std::arch::asm;
use std::ffi::c_int;
use std::io;
use std::net::SocketAddrV4;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use base::Instant;
use posix::{Errno, Host, Link, Open, Result, Transport, UnconnectedSocket};
use rt::{AnyIo, Clock, Wanting};
use sietch_io::{Doorbell, Queue, QueueConfig, Station};

use crate::numbers::{self, Whose};
use crate::patience::{Bells, close_own, make_bell};
use crate::{config, keeper, seen};
use backlog::Backlog;
use children::Forking;
pub use children::{LEND, Lent, Loan, RETURN, claim_back, claim_while_we_may, release};

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
        if is_taker {
            backlog::claim_soon();
        }
    }
}

impl Port {
    /// The card's interrupt, if the link is one.
    pub fn interrupt(&self) -> Option<BorrowedFd<'_>> {
        self.0.interrupt()
    }

    /// Forgets what has come of it ([`Doorbell::forget`]).
    pub fn forget(&self) {
        self.0.forget();
    }

    /// Gives a connection's frames to another queue.
    ///
    /// Errors: those of [`Doorbell::move_flow`].
    pub fn move_flow(&self, local: SocketAddrV4, peer: SocketAddrV4, to: u16) -> io::Result<()> {
        self.0.move_flow(local, peer, to)
    }

    /// Gives them to the kernel's stack.
    ///
    /// Errors: those of [`Doorbell::move_flow`].
    pub fn move_flow_to_stack(&self, local: SocketAddrV4, peer: SocketAddrV4) -> io::Result<()> {
        self.0.move_flow_to_stack(local, peer)
    }

    /// Gives a port to the kernel's stack, or takes it back.
    ///
    /// Errors: those of [`Doorbell::move_port`].
    pub fn move_port(&self, transport: Transport, port: u16, is_to_stack: bool) -> io::Result<()> {
        let protocol = match transport {
            Transport::Tcp => libc::IPPROTO_TCP,
            Transport::Udp => libc::IPPROTO_UDP,
        };
        self.0.move_port(protocol as u8, port, is_to_stack)
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
    /// All sockets are a newer library's, which stands behind us.
    Moved,
}

/// What the lock guards.
pub struct State {
    hosting: Hosting,
    /// Of an open host: what ends the keeper's sleep, and where an operator asks for an exchange.
    keeper_bell: c_int,
    pub control: Option<OwnedFd>,
    /// The queue is one beside the parent's.
    pub is_childs: bool,
    /// Sockets of the parent's that are opened again when they are used.
    unconnected: Vec<UnconnectedSocket>,
    /// Connections that other processes have.
    loans: Vec<Loan>,
    /// Backlogs of the parent's.
    backlogs: Vec<Backlog>,
    /// Channels on which threads of ours wait for claims.
    lending: Vec<c_int>,
    /// Connections that stand still, because somebody is about to have them.
    moving: Vec<Arc<Open>>,
    forking: Option<Forking>,
    /// It was said that a socket of the parent's cannot be had.
    has_complained: bool,
    pub bells: Bells,
    clock: Clock,
}

impl State {
    const fn new() -> Self {
        Self {
            hosting: Hosting::Unopened,
            keeper_bell: -1,
            control: None,
            is_childs: false,
            unconnected: Vec::new(),
            loans: Vec::new(),
            backlogs: Vec::new(),
            lending: Vec::new(),
            moving: Vec::new(),
            forking: None,
            has_complained: false,
            bells: Bells::new(),
            clock: Clock::new(),
        }
    }
}

/// Hosts at most: the first and one for each of so many threads.
pub const PLACES: usize = 9;

static STATES: [Mutex<State>; PLACES] = [const { Mutex::new(State::new()) }; PLACES];

/// The thread that has locked each last, which may have it still. It is written with the lock.
static LOCKED_BY: [AtomicUsize; PLACES] = [const { AtomicUsize::new(0) }; PLACES];

/// Of hosts whose keeper has found them locked: who has locked it lets go what lies there, in the keeper's stead.
static KEEPER_ASKS: [AtomicBool; PLACES] = [const { AtomicBool::new(false) }; PLACES];

/// A number of the calling thread's, as long as it lives: where its control block lies, which says so itself (the psABI of
/// x86-64, "Thread-Local Storage"). A variable of the thread's would be a call.
#[inline]
pub fn current_thread() -> usize {
    let block: usize;
    // SAFETY: **Thread**.
    unsafe {
        asm!("mov {}, fs:0", out(reg) block, options(nostack, pure, readonly, preserves_flags));
    }
    block
}

/// What listens to operators, given before `main`.
pub static CONTROL: OnceLock<fn() -> Option<OwnedFd>> = OnceLock::new();

/// The time, for who has not got the lock.
pub fn now() -> Instant {
    Instant::from_nanos(rt::monotonic_nanos())
}

/// The first's lock, whatever there is behind it.
pub fn lock() -> MutexGuard<'static, State> {
    lock_at(0)
}

/// That of a place below [`PLACES`].
#[inline]
pub fn lock_at(place: u8) -> MutexGuard<'static, State> {
    try_lock_at(place).unwrap_or_else(|| wait_for_lock_at(place))
}

/// Whoever has it, and only looks for frames, is asked to let go.
#[cold]
fn wait_for_lock_at(place: u8) -> MutexGuard<'static, State> {
    let at = usize::from(place);
    let _wanting = Wanting::begin();
    let state = STATES[at].lock().unwrap_or_else(PoisonError::into_inner);
    LOCKED_BY[at].store(current_thread(), Relaxed);
    state
}

/// The same, unless somebody has it.
#[inline]
pub fn try_lock_at(place: u8) -> Option<MutexGuard<'static, State>> {
    let at = usize::from(place);
    let state = STATES[at].try_lock().ok()?;
    LOCKED_BY[at].store(current_thread(), Relaxed);
    Some(state)
}

/// Whether nobody has locked it since the calling thread did: whoever finds it locked then has it, or the next one has not said so yet.
pub fn is_locked_by_us(place: u8) -> bool {
    LOCKED_BY[usize::from(place)].load(Relaxed) == current_thread()
}

/// The places beyond the first.
pub fn further() -> impl DoubleEndedIterator<Item = u8> {
    1..PLACES as u8
}

/// The right to use a host. Given back, it tells those who wait what has happened.
pub struct Held(MutexGuard<'static, State>, u8);

impl Held {
    /// Waits for the first host.
    ///
    /// Errors: `NETWORK_DOWN` without a host, `MOVED` if it is a newer library's.
    #[inline]
    pub fn wait() -> Result<Self> {
        Self::at(0)
    }

    /// Waits for the host of a place. Who has several locked has those of lower places first.
    ///
    /// Errors: those of [`wait`](Self::wait).
    #[inline]
    pub fn at(place: u8) -> Result<Self> {
        Self::with(lock_at(place), place)
    }

    /// The host of a place for its keeper. `None` if somebody has locked it, who lets go then what lies there.
    ///
    /// Errors: those of [`wait`](Self::wait).
    pub fn at_or_ask(place: u8) -> Result<Option<Self>> {
        let Some(state) = try_lock_at(place) else {
            KEEPER_ASKS[usize::from(place)].store(true, Relaxed);
            return Ok(None);
        };
        Self::with(state, place).map(Some)
    }

    #[inline]
    fn with(state: MutexGuard<'static, State>, place: u8) -> Result<Self> {
        match state.hosting {
            Hosting::Open(_) => Ok(Self(state, place).at_this_time()),
            Hosting::Moved => Err(Errno::MOVED),
            _ => Err(Errno::NETWORK_DOWN),
        }
    }

    /// Waits for the host that has what a number names. It stays that one's while this is held.
    ///
    /// Errors: those of [`wait`](Self::wait).
    #[inline]
    pub fn of(number: c_int) -> Result<Self> {
        Self::where_it_is(|| numbers::place(number))
    }

    /// Waits for the host that has a socket.
    ///
    /// Errors: those of [`wait`](Self::wait).
    pub fn of_open(open: &Open) -> Result<Self> {
        Self::where_it_is(|| open.place())
    }

    /// It may move while we wait, but not once we have the lock of the host that has it.
    #[inline(always)]
    fn where_it_is(place_now: impl Fn() -> u8) -> Result<Self> {
        loop {
            let place = place_now();
            let state = lock_at(place);
            if place_now() == place {
                return Self::with(state, place);
            }
        }
    }

    /// Which host it is.
    #[inline]
    pub fn place(&self) -> u8 {
        self.1
    }

    /// The same, opening the host if nobody has yet; `None` if there is none.
    pub fn open() -> Option<Self> {
        let config = config::get()?;
        let mut state = lock();
        if let Hosting::Unopened = state.hosting {
            state.open(config);
        }
        match state.hosting {
            Hosting::Open(_) => Some(Self(state, 0).at_this_time()),
            _ => None,
        }
    }

    #[inline]
    fn at_this_time(mut self) -> Self {
        let now = self.now();
        self.host().set_now(now);
        self
    }

    /// The queue's number; `None` of a card.
    pub fn queue(&self) -> Option<u16> {
        self.0.queue()
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

    #[cold]
    fn flush_for_keeper(&mut self) {
        KEEPER_ASKS[usize::from(self.1)].store(false, Relaxed);
        if let Some(host) = self.0.host() {
            host.flush();
        }
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
        if KEEPER_ASKS[usize::from(self.1)].load(Relaxed) {
            self.flush_for_keeper();
        }
        self.0.tell_news();
    }
}

fn open(config: &QueueConfig) -> io::Result<Box<Host<Port>>> {
    let (doorbell, station) = Queue::open(config)?.into_parts();
    for descriptor in doorbell.descriptors() {
        numbers::set(descriptor.as_raw_fd(), Whose::Library);
    }
    let host = Host::new(Port(doorbell), station, config.address, config.ring_entries);
    Ok(Box::new(host))
}

impl State {
    /// Opens a host, whatever there was.
    fn open(&mut self, config: &QueueConfig) {
        self.hosting = match open(config) {
            Ok(host) => Hosting::Open(host),
            Err(error) => {
                let link = &config.link;
                eprintln!("libsietch: {link}: {error}; the kernel's sockets are used.");
                Hosting::Refused
            }
        };
        self.start_threads();
    }

    /// Starts what looks after a host, and listens to operators.
    pub fn start_threads(&mut self) {
        let Hosting::Open(host) = &self.hosting else {
            return;
        };
        let doorbell = &host.link().0;
        let revocation = doorbell.revocation().map(|file| file.as_raw_fd());
        let descriptor = doorbell.as_fd().as_raw_fd();
        self.keeper_bell = make_bell().unwrap_or(-1);
        seen::start(self.is_childs);
        keeper::start(0, descriptor, revocation, self.keeper_bell);
        self.control = CONTROL.get().and_then(|start| start());
    }

    /// Opens a further host, at its place.
    ///
    /// Errors: those of the system.
    pub fn open_further(&mut self, place: u8, config: &QueueConfig) -> io::Result<()> {
        let host = open(config)?;
        let descriptor = descriptor(&host);
        self.hosting = Hosting::Open(Box::new(host.at_place(place)));
        self.keeper_bell = make_bell().unwrap_or(-1);
        keeper::start(place, descriptor, None, self.keeper_bell);
        Ok(())
    }

    /// Ends a further host, whose sockets and sets are others'. No thread waits for its frames in the kernel any more.
    pub fn close_further(&mut self) {
        self.leave_further(drop);
    }

    /// In a child: a further host is the parent's, and so is its packet memory.
    pub fn forget_further(&mut self) {
        self.leave_further(std::mem::forget);
    }

    fn leave_further(&mut self, end: impl FnOnce(Station<AnyIo>)) {
        if let Hosting::Open(host) = std::mem::replace(&mut self.hosting, Hosting::Unopened) {
            let (port, station) = host.into_parts();
            for file in port.0.descriptors() {
                numbers::set(file.as_raw_fd(), Whose::Kernel);
            }
            drop(port);
            end(station);
        }
        self.bells = Bells::new();
        close_own(std::mem::replace(&mut self.keeper_bell, -1));
    }

    /// In a newer library: opens a host that nobody uses before [`start_threads`](Self::start_threads).
    ///
    /// Errors: those of the system; `ResourceBusy` where there was a host.
    pub fn open_quietly(&mut self, config: &QueueConfig) -> io::Result<()> {
        let Hosting::Unopened = self.hosting else {
            return Err(io::ErrorKind::ResourceBusy.into());
        };
        self.hosting = Hosting::Open(open(config)?);
        Ok(())
    }

    /// And gives it up: there was none.
    pub fn close_quietly(&mut self) {
        numbers::give_up();
        self.hosting = Hosting::Unopened;
    }

    /// Has the keeper look at once, or no more.
    pub fn ring_keeper(&mut self, is_ringing: bool) {
        let mut count = 1_u64;
        let call = match is_ringing {
            true => libc::SYS_write,
            false => libc::SYS_read,
        };
        // SAFETY: **Ours**, or no descriptor; eight bytes of `count` are read or written.
        unsafe { libc::syscall(call, self.keeper_bell, &raw mut count, size_of::<u64>()) };
    }

    /// Ends this library's part: its numbers are a newer one's, and so is the link when this returns. Frames that came
    /// to its queue until then go to `hear`. What is left has nothing to do, and takes time to be dropped.
    pub fn move_on(&mut self, hear: impl FnOnce(Vec<Vec<u8>>)) -> Option<Station<AnyIo>> {
        numbers::give_up();
        seen::stop();
        let mut left = None;
        if let Hosting::Open(mut host) = std::mem::replace(&mut self.hosting, Hosting::Moved) {
            let frames = host.take_frames();
            let (port, station) = host.into_parts();
            // From here on frames come to the newer library's queue.
            drop(port);
            hear(frames);
            left = Some(station);
        }
        self.control = None;
        self.bells = Bells::new();
        // The keeper's own wait is over.
        close_own(std::mem::replace(&mut self.keeper_bell, -1));
        left
    }

    /// The number of the queue; `None` of a card.
    pub fn queue(&self) -> Option<u16> {
        match &self.hosting {
            Hosting::Open(host) => match &host.link().0 {
                Doorbell::Socket(socket) => Some(socket.queue()),
                Doorbell::Card(_) => None,
            },
            _ => None,
        }
    }

    /// Tells those who wait what has happened. Who has looked at frames does it before others have the lock: the kernel wakes
    /// nobody for a frame that is in the ring no longer.
    #[inline]
    pub fn tell_news(&mut self) {
        let Self { hosting, bells, .. } = self;
        if let Hosting::Open(host) = hosting
            && host.take_news()
        {
            bells.ring();
        }
    }

    /// The host, if there is one.
    pub fn host(&mut self) -> Option<&mut Host<Port>> {
        match &mut self.hosting {
            Hosting::Open(host) => Some(host),
            _ => None,
        }
    }
}

/// The descriptor that frames are waited for by.
pub fn descriptor(host: &Host<Port>) -> c_int {
    host.link().as_fd().as_raw_fd()
}
