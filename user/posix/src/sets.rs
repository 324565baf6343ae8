//! Epoll sets: the kernel's mechanism (`core/epoll`), watching our sockets.
//!
//! A set of the program's is two: its members that are ours are here, the others in the kernel's set of the
//! same number. Who waits looks at both.

use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};

use base::lock::{Family, Lock};
use base::{Memory, NoMemory};
use epoll::{Event, Set, Waiters, Watch};

use crate::errno::Result;
use crate::open::Open;
use crate::pace::Pace;

/// The world of our sets.
#[derive(Debug)]
pub struct Sets;

impl epoll::Host for Sets {
    type Family = Threads;
    type Memory = Heap;
    type Open = Open;
    type Waiters = Nobody;

    fn resched_point() {}
}

/// Locks and flags of the standard library. Who has the host has them all, unless members are other hosts', so hardly anybody
/// waits for one.
#[derive(Debug)]
pub struct Threads;

impl Family for Threads {
    type Lock<T> = ThreadLock<T>;
    type Flag = AtomicBool;
    type Count = AtomicUsize;
}

/// A lock of threads.
#[derive(Debug)]
pub struct ThreadLock<T>(Mutex<T>);

impl<T> Lock<T> for ThreadLock<T> {
    type Guard<'a>
        = MutexGuard<'a, T>
    where
        T: 'a;

    fn new(value: T) -> Self {
        Self(Mutex::new(value))
    }

    fn lock(&self) -> MutexGuard<'_, T> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
        match self.0.try_lock() {
            Ok(guard) => Some(guard),
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }
}

/// The program's heap, which ends the program when it is exhausted.
#[derive(Debug)]
pub struct Heap;

impl Memory for Heap {
    fn reserve<E>(
        grow: impl FnOnce() -> core::result::Result<(), E>,
    ) -> core::result::Result<(), NoMemory> {
        grow().map_err(|_| NoMemory)
    }
}

/// Who waits is told when the host is let go, whichever set it waits for.
#[derive(Debug, Default)]
pub struct Nobody;

impl Waiters for Nobody {
    fn wake_one(&self) -> bool {
        false
    }

    fn notify_observers(&self) {}
}

/// In a word of [`WatchSet::places`]: the bits of places, and one that was noted.
const PLACES: u32 = 0xffff;
const NOTED: u32 = 1 << 16;

/// The part of an epoll set that is ours.
pub struct WatchSet {
    set: Arc<Set<Sets>>,
    /// A bit for each of the program's hosts that have, or had, a member, below a count of all that were noted.
    places: AtomicU32,
    /// A connection was added.
    has_connections: AtomicBool,
    /// Who waits for it, by a number that is not zero.
    waiter: AtomicUsize,
    /// When the kernel is asked for its part.
    pub pace: Pace,
}

impl WatchSet {
    /// One without members.
    pub fn new() -> Arc<Self> {
        Arc::new(Self {
            set: Set::new(),
            places: AtomicU32::new(0),
            has_connections: AtomicBool::new(false),
            waiter: AtomicUsize::new(0),
            pace: Pace::default(),
        })
    }

    /// Watches a socket under a number of its.
    pub fn add(&self, number: u32, open: &Arc<Open>, watch: Watch) -> Result<()> {
        self.set.add(number, open, watch)?;
        self.note_place(open.place());
        Ok(())
    }

    /// Which of the program's hosts may have members: a bit for each.
    #[inline]
    pub fn places(&self) -> u16 {
        self.places.load(Acquire) as u16
    }

    /// This one may from now on.
    pub fn note_place(&self, place: u8) {
        let noted = |places: u32| Some(places.wrapping_add(NOTED) | 1 << place);
        // It is never refused.
        self.places.fetch_update(AcqRel, Acquire, noted).ok();
    }

    /// Looks anew which do. No member may move meanwhile. One that comes is noted when it is there, so if none was noted since we
    /// began to look we have seen all.
    pub fn find_places(&self) {
        let mut before = self.places.load(Acquire);
        loop {
            let mut places = before & !PLACES;
            self.set.members(|_, open, _| places |= 1 << open.place());
            match self
                .places
                .compare_exchange(before, places, AcqRel, Acquire)
            {
                Ok(_) => return,
                Err(now) => before = now,
            }
        }
    }

    /// Whether a connection was ever added, and it is settled who waits here.
    #[inline]
    pub fn has_connections(&self) -> bool {
        self.has_connections.load(Acquire)
    }

    /// One is about to be; whether it is the first.
    pub fn note_connection(&self) -> bool {
        !self.has_connections.swap(true, AcqRel)
    }

    /// Somebody is about to wait.
    pub fn note_waiter(&self, waiter: usize) {
        self.waiter.store(waiter, Relaxed);
    }

    /// Who waited last; zero if nobody has.
    pub fn waiter(&self) -> usize {
        self.waiter.load(Relaxed)
    }

    /// Watches it for something else.
    pub fn modify(&self, number: u32, open: &Arc<Open>, watch: Watch) -> Result<()> {
        Ok(self.set.modify(number, open, watch)?)
    }

    /// Watches it no longer.
    pub fn remove(&self, number: u32, open: &Arc<Open>) -> Result<()> {
        Ok(self.set.remove(number, open)?)
    }

    /// Watches it as another set has ([`members`](Self::members)).
    pub(crate) fn restore(&self, number: u32, open: &Arc<Open>, watch: Watch) -> Result<()> {
        self.set.restore(number, open, watch)?;
        self.note_place(open.place());
        Ok(())
    }

    /// Passes all that it watches to `give`.
    pub(crate) fn members(&self, give: impl FnMut(u32, &Arc<Open>, Watch)) {
        self.set.members(give);
    }

    /// Whether anything may be ready.
    pub fn may_be_ready(&self) -> bool {
        self.set.may_be_ready()
    }

    /// Gives what is ready to `give`, at most `limit` of them; how many there were.
    pub fn collect(&self, limit: usize, mut give: impl FnMut(Event)) -> usize {
        let given = self.set.collect(limit, |event| {
            give(event);
            Ok::<(), NoMemory>(())
        });
        given.unwrap_or_default()
    }
}

impl Drop for WatchSet {
    fn drop(&mut self) {
        self.set.close();
    }
}
