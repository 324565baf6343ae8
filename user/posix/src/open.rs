//! What the numbers of one socket have in common.

use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, AtomicUsize};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use epoll::{Entry, Events, Observers, Sharing};
use inet::{SocketId, Transport};

use crate::ancillary::Wanted;
use crate::sets::{Sets, WatchSet};

/// Which way bytes go.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Direction {
    /// To the program.
    Receive,
    /// From it.
    Send,
}

/// The kernel's socket behind the number was not asked yet.
const UNKNOWN: u32 = u32::MAX;

/// A socket. All of it is written by who has its [`Host`](crate::Host). What is ready may be read by who has another
/// one, for a set that watches sockets of both; who waits reads its place, to find that host again.
pub struct Open {
    /// Its place in the stack that has it, and which of the program's hosts that is.
    id: AtomicU64,
    place: AtomicU8,
    pub(crate) transport: Transport,
    ready: AtomicU32,
    observers: Mutex<Observers<Entry<Sets>>>,
    is_nonblocking: AtomicBool,
    /// A call to connect did not wait, and no other has told yet how it ended.
    pub(crate) is_outcome_untold: AtomicBool,
    /// It has a name or a peer here.
    is_settled: AtomicBool,
    /// Peers that nobody knows are for it: it listens, or has been named for datagrams.
    pub(crate) serves: AtomicBool,
    /// Limits of a call's wait in nanoseconds; zero for none.
    timeouts: [AtomicU64; 2],
    /// The bits of [`Wanted`], or [`UNKNOWN`].
    wanted: AtomicU32,
    /// A call has waited for what comes.
    has_waited: AtomicBool,
    /// How many numbers it has, and how many other processes may claim it (`checkpoint`, `moving`).
    pub(crate) numbers: AtomicUsize,
    pub(crate) holds: AtomicUsize,
}

impl Open {
    pub(crate) fn new(
        (id, place): (SocketId, u8),
        transport: Transport,
        is_nonblocking: bool,
    ) -> Arc<Self> {
        Arc::new(Self {
            id: AtomicU64::new(id.to_bits()),
            place: AtomicU8::new(place),
            transport,
            ready: AtomicU32::new(0),
            has_waited: AtomicBool::new(false),
            observers: Mutex::default(),
            is_nonblocking: AtomicBool::new(is_nonblocking),
            is_outcome_untold: AtomicBool::new(false),
            is_settled: AtomicBool::new(false),
            serves: AtomicBool::new(false),
            timeouts: [AtomicU64::new(0), AtomicU64::new(0)],
            wanted: AtomicU32::new(UNKNOWN),
            numbers: AtomicUsize::new(0),
            holds: AtomicUsize::new(0),
        })
    }

    /// Its name in the stack of the host that has it.
    #[inline]
    pub(crate) fn id(&self) -> SocketId {
        SocketId::from_bits(self.id.load(Relaxed))
    }

    /// Which of the program's hosts has it. It changes only while both hosts are locked.
    #[inline]
    pub fn place(&self) -> u8 {
        self.place.load(Acquire)
    }

    /// Another host has it.
    pub(crate) fn settle_at(&self, id: SocketId, place: u8) {
        self.id.store(id.to_bits(), Relaxed);
        self.place.store(place, Release);
    }

    /// Whether it is a stream or for datagrams.
    #[inline]
    pub fn transport(&self) -> Transport {
        self.transport
    }

    /// Whether it is a listener.
    pub fn listens(&self) -> bool {
        self.transport == Transport::Tcp && self.serves.load(Relaxed)
    }

    /// A call has waited for what comes; whether one had before.
    pub fn waits_again(&self) -> bool {
        self.has_waited.swap(true, Relaxed)
    }

    /// Whether its calls must not wait (O_NONBLOCK).
    #[inline]
    pub fn is_nonblocking(&self) -> bool {
        self.is_nonblocking.load(Relaxed)
    }

    /// Whether they must not, from now on.
    pub fn set_nonblocking(&self, is_nonblocking: bool) {
        self.is_nonblocking.store(is_nonblocking, Relaxed);
    }

    /// Whether it has a name or a peer, so that it cannot become a socket of the kernel's any more.
    pub fn is_settled(&self) -> bool {
        self.is_settled.load(Relaxed)
    }

    pub(crate) fn settle(&self) {
        self.is_settled.store(true, Relaxed);
    }

    /// How long a call may wait (SO_RCVTIMEO, SO_SNDTIMEO), in nanoseconds.
    pub fn timeout_nanos(&self, direction: Direction) -> Option<u64> {
        let nanos = self.timeouts[direction as usize].load(Relaxed);
        (nanos != 0).then_some(nanos)
    }

    /// A connection's calls wait as long as its listener's.
    pub(crate) fn inherit_timeouts(&self, listener: &Self) {
        for (ours, theirs) in self.timeouts.iter().zip(&listener.timeouts) {
            ours.store(theirs.load(Relaxed), Relaxed);
        }
    }

    pub(crate) fn set_timeout_nanos(&self, direction: Direction, nanos: u64) {
        self.timeouts[direction as usize].store(nanos, Relaxed);
    }

    /// What its receiver wants to be told of datagrams; `None` if the kernel's socket behind the number, which keeps
    /// that, has to be asked.
    pub fn wanted(&self) -> Option<Wanted> {
        let bits = self.wanted.load(Relaxed);
        (bits != UNKNOWN).then(|| Wanted::from_bits_truncate(bits))
    }

    /// That was asked, or has to be anew.
    pub fn set_wanted(&self, wanted: Option<Wanted>) {
        let bits = wanted.map_or(UNKNOWN, |wanted| wanted.bits());
        self.wanted.store(bits, Relaxed);
    }

    /// What is ready now.
    #[inline]
    pub fn ready(&self) -> Events {
        Events::from_bits_truncate(self.ready.load(Relaxed))
    }

    #[inline]
    pub(crate) fn set_ready(&self, events: Events) {
        self.ready.store(events.bits(), Relaxed);
    }

    fn observers(&self) -> MutexGuard<'_, Observers<Entry<Sets>>> {
        self.observers
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether a set watches it.
    pub(crate) fn is_watched(&self) -> bool {
        !self.observers().is_empty()
    }

    /// Its last number is closed: no set watches it any more, though others may have it still. An event would name a
    /// number that is nobody's, or another socket's by now.
    pub(crate) fn leave_sets(&self) {
        let all = self.observers().take();
        all.for_each(|entry| entry.retire());
    }

    /// Sets that watch it are told that something has happened.
    #[inline(always)]
    pub(crate) fn tell(&self) {
        let events = self.ready();
        let observers = self.observers();
        observers.notify(events, |entry| entry.notify(events));
    }
}

impl epoll::Open<Sets> for Open {
    #[inline]
    fn poll(&self, _interest: Events) -> Events {
        self.ready()
    }

    fn observe(&self, entry: Weak<Entry<Sets>>, interest: Events, sharing: Sharing) {
        self.observers().observe(entry, interest, sharing);
    }

    fn change_interest(&self, entry: Weak<Entry<Sets>>, interest: Events) {
        self.observers().change_interest(&entry, interest);
    }

    fn forget(&self, entry: Weak<Entry<Sets>>) {
        self.observers().forget(&entry);
    }

    fn nested(&self) -> Option<Arc<epoll::Set<Sets>>> {
        None
    }
}

/// What a number names.
#[derive(Clone)]
pub enum Named {
    /// A socket.
    Socket(Arc<Open>),
    /// An epoll set that may have sockets of ours.
    Set(Arc<WatchSet>),
}
