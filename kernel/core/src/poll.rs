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
use core::sync::atomic::{AtomicUsize, Ordering};

use bitflags::bitflags;
use mach::sync::Spin;

use crate::sync::WaitQueue;

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
    fn notify(&self, events: Events);
}

struct Registration {
    interest: Events,
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
    pub fn notify(&self, events: Events) {
        self.queue.wake_all();
        if self.count.load(Ordering::Acquire) != 0 {
            self.notify_observers(events);
        }
    }

    fn notify_observers(&self, events: Events) {
        for entry in self.observers.lock().iter() {
            if events.intersects(entry.interest | Events::ALWAYS)
                && let Some(observer) = entry.observer.upgrade()
            {
                observer.notify(events);
            }
        }
    }

    /// Registers `observer` for changes that concern `interest`.
    ///
    /// The caller checks readiness afterwards, so that no change falls in between.
    pub fn observe(&self, observer: &Arc<dyn Observer>, interest: Events) {
        let mut list = self.observers.lock();
        list.push(Registration { interest, observer: Arc::downgrade(observer) });
        self.count.store(list.len(), Ordering::Release);
    }

    /// Removes `observer`; nothing happens if it is not registered.
    pub fn forget(&self, observer: &Arc<dyn Observer>) {
        let mut list = self.observers.lock();
        let gone = Arc::downgrade(observer);
        list.retain(|entry| !entry.observer.ptr_eq(&gone));
        self.count.store(list.len(), Ordering::Release);
    }
}
