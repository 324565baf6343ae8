//! Readiness: who waits for an object, and how it tells them.
//!
//! An object that can be waited for (pipe, socket, terminal, eventfd ...) holds one
//! [`Pollee`] and calls [`Pollee::notify`] after it changed. Threads that block in its
//! calls wait on `pollee.queue`; epoll, poll and select register an [`Observer`].
//! Readiness itself is never stored here: the object computes it when it is asked, so it
//! cannot go stale. A notification without listeners costs two loads.
//!
//! Lock order: the object's own lock, then the pollee's lists, then an observer's lock.

use alloc::sync::{Arc, Weak};
use alloc::vec::Vec;
use core::sync::atomic::{AtomicUsize, Ordering};

use bitflags::bitflags;
use mach::sync::Spin;

use crate::WaitQueue;

bitflags! {
    /// Conditions of poll(2); the bits are Linux' own.
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
