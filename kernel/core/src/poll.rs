//! Readiness: who waits for an object, and how it tells them.
//!
//! An object that can be waited for (pipe, socket, terminal, eventfd ...) holds one
//! [`Pollee`] and calls [`Pollee::notify`] after it changed. Threads that block in its
//! calls wait on `pollee.queue`; epoll, poll and select register an [`Observer`].
//! Readiness itself is never stored here: [`crate::file::File::poll`] computes it, so it
//! cannot go stale. A notification without listeners costs two loads.
//!
//! Lock order: the object's own lock, then the pollee's lists, then an observer's lock.

use alloc::sync::{Arc, Weak};
use alloc::vec::Vec;
use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use bitflags::bitflags;
use mach::sync::Spin;

use crate::error::{Error, Result};
use crate::file::OpenFile;
use crate::sched::{self, Runnable, current, resched_point};
use crate::sync::{Wait, WaitQueue};

bitflags! {
    /// Conditions of poll(2); the bits are Linux's own.
    #[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
    pub struct Events: u32 {
        /// There is something to read.
        const IN = 0x1;
        /// Urgent data or an exceptional condition.
        const PRI = 0x2;
        /// Writing would not block.
        const OUT = 0x4;
        /// An error is pending; always reported.
        const ERR = 0x8;
        /// Both directions are closed; always reported.
        const HUP = 0x10;
        /// The number names no open file (poll only).
        const NVAL = 0x20;
        /// Same as IN.
        const RDNORM = 0x40;
        /// Priority band data.
        const RDBAND = 0x80;
        /// Same as OUT.
        const WRNORM = 0x100;
        /// Priority band may be written.
        const WRBAND = 0x200;
        /// The peer closed its sending half.
        const RDHUP = 0x2000;
    }
}

impl Events {
    /// Conditions that are reported whether asked for or not.
    pub const ALWAYS: Self = Self::ERR.union(Self::HUP);
    /// What a readable object reports.
    pub const READABLE: Self = Self::IN.union(Self::RDNORM);
    /// What a writable object reports.
    pub const WRITABLE: Self = Self::OUT.union(Self::WRNORM);
}

/// Somebody who wants to hear that an object changed: an epoll entry, a polling thread.
pub trait Observer: Send + Sync {
    /// `events` may have become true. Called with the notifier's locks held: must not
    /// block and must not call back into the object.
    ///
    /// Returns whether a thread will act on it; an exclusive observer that says so is
    /// the only one of its kind that hears of this change.
    fn notify(self: Arc<Self>, events: Events) -> bool;
}

/// Who hears of a change when several observers wait for it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Sharing {
    /// This one, whoever else does.
    Shared,
    /// One of those that say so, that has a thread waiting (EPOLLEXCLUSIVE).
    Exclusive,
}

struct Registration {
    interest: Events,
    sharing: Sharing,
    observer: Weak<dyn Observer>,
}

/// The listeners of one object.
#[derive(Default)]
pub struct Pollee {
    /// Threads blocked in the object's own calls.
    pub queue: WaitQueue,
    count: AtomicUsize,
    observers: Spin<Vec<Registration>>,
}

impl Pollee {
    /// Without listeners.
    pub const fn new() -> Self {
        Self {
            queue: WaitQueue::new(),
            count: AtomicUsize::new(0),
            observers: Spin::new(Vec::new()),
        }
    }

    /// Tells everybody that `events` may have become true.
    #[inline]
    pub fn notify(&self, events: Events) {
        self.queue.wake_all();
        self.notify_observers(events);
    }

    /// Tells the observers only: no thread can be blocked for want of `events`.
    #[inline]
    pub fn notify_observers(&self, events: Events) {
        if self.count.load(Ordering::SeqCst) != 0 {
            self.notify_each(events);
        }
    }

    fn notify_each(&self, events: Events) {
        let mut is_taken = false;
        for entry in self.observers.lock().iter() {
            let is_exclusive = entry.sharing == Sharing::Exclusive;
            if is_exclusive && is_taken || !events.intersects(entry.interest | Events::ALWAYS) {
                continue;
            }
            if let Some(observer) = entry.observer.upgrade() {
                is_taken |= observer.notify(events) && is_exclusive;
            }
        }
    }

    /// Registers `observer` for changes that concern `interest`.
    ///
    /// The caller checks readiness afterwards, so that no change falls in between.
    pub fn observe(&self, observer: Weak<dyn Observer>, interest: Events, sharing: Sharing) {
        let mut list = self.observers.lock();
        list.retain(|entry| entry.observer.strong_count() != 0);
        if list.capacity() == 0 {
            // Nearly every object has one observer: an epoll with many connections.
            list.reserve_exact(1);
        }
        list.push(Registration {
            interest,
            sharing,
            observer,
        });
        self.count.store(list.len(), Ordering::SeqCst);
    }

    /// Changes what `observer` wants to hear of.
    pub fn change_interest(&self, observer: &Weak<dyn Observer>, interest: Events) {
        let mut list = self.observers.lock();
        for entry in list
            .iter_mut()
            .filter(|entry| entry.observer.ptr_eq(observer))
        {
            entry.interest = interest;
        }
    }

    /// Removes `observer`; nothing happens if it is not registered.
    pub fn forget(&self, observer: &Weak<dyn Observer>) {
        let mut list = self.observers.lock();
        list.retain(|entry| !entry.observer.ptr_eq(observer));
        self.count.store(list.len(), Ordering::SeqCst);
    }
}

/// One file of poll(2) or select(2).
pub struct Watched {
    /// The file; `None` where the number names none.
    pub open: Option<Arc<OpenFile>>,
    /// What is asked for.
    pub interest: Events,
    /// What is true: the answer.
    pub ready: Events,
}

impl Watched {
    /// Asks the file; whether there is something to report.
    fn check(&mut self) -> bool {
        if let Some(open) = &self.open {
            let interest = self.interest | Events::ALWAYS;
            self.ready = open.file.poll_for(interest) & interest;
        }
        !self.ready.is_empty()
    }

    fn pollee(&self) -> Option<&Pollee> {
        self.open.as_ref().and_then(|open| open.file.pollee())
    }
}

/// A thread that waits for several files.
struct Sleeper {
    thread: Arc<dyn Runnable>,
    is_told: AtomicBool,
}

impl Observer for Sleeper {
    fn notify(self: Arc<Self>, _events: Events) -> bool {
        if !self.is_told.swap(true, Ordering::SeqCst) {
            sched::wake(self.thread.entity());
        }
        true
    }
}

/// Waits until one of `files` is ready; returns how many are, 0 at the deadline.
///
/// Nothing is registered if something is ready at once, which is the common case.
pub fn wait_for_any(files: &mut [Watched], how: Wait) -> Result<usize> {
    let count = check_all(files);
    if count != 0 || how.deadline <= mach::time::now() {
        return Ok(count);
    }
    let sleeper = Arc::new(Sleeper {
        thread: current().arc(),
        is_told: AtomicBool::new(false),
    });
    let as_observer: Arc<dyn Observer> = sleeper.clone();
    let observer = Arc::downgrade(&as_observer);
    for file in files.iter() {
        if let Some(pollee) = file.pollee() {
            pollee.observe(observer.clone(), file.interest, Sharing::Shared);
        }
        resched_point();
    }
    let outcome = sleep(files, how, &sleeper.is_told);
    for pollee in files.iter().filter_map(Watched::pollee) {
        pollee.forget(&observer);
        resched_point();
    }
    outcome
}

fn sleep(files: &mut [Watched], how: Wait, is_told: &AtomicBool) -> Result<usize> {
    loop {
        is_told.store(false, Ordering::SeqCst);
        let count = check_all(files);
        if count != 0 {
            return Ok(count);
        }
        match how.park_unless(|| is_told.load(Ordering::SeqCst)) {
            Err(Error::TimedOut) => return Ok(check_all(files)),
            outcome => outcome?,
        }
    }
}

fn check_all(files: &mut [Watched]) -> usize {
    let check = |file: &mut Watched| {
        resched_point();
        usize::from(file.check())
    };
    files.iter_mut().map(check).sum()
}
