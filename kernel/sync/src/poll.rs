//! Readiness: who waits for an object, and how it tells them.
//!
//! An object that can be waited for (pipe, socket, terminal, eventfd ...) holds one
//! [`Pollee`] and calls [`Pollee::notify`] after it changed. Threads that block in its
//! calls wait on `pollee.queue`; epoll, poll and select register an [`Observer`].
//! Readiness itself is never stored here: the object computes it when it is asked, so it
//! cannot go stale. A notification without listeners costs two loads.
//!
//! Lock order: the object's own lock, then the pollee's lists, then an observer's lock.

use alloc::sync::Weak;
use core::sync::atomic::{AtomicUsize, Ordering};

use epoll::Observers;
use mach::sync::Spin;

use crate::WaitQueue;

pub use epoll::{Events, Observer, Sharing};

/// The listeners of one object.
#[derive(Default)]
pub struct Pollee {
    /// Threads blocked in the object's own calls.
    pub queue: WaitQueue,
    count: AtomicUsize,
    observers: Spin<Observers<dyn Observer>>,
}

impl Pollee {
    /// Without listeners.
    pub const fn new() -> Self {
        Self {
            queue: WaitQueue::new(),
            count: AtomicUsize::new(0),
            observers: Spin::new(Observers::new()),
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

    /// Whether somebody is to be told of what becomes ready.
    pub fn is_observed(&self) -> bool {
        self.count.load(Ordering::SeqCst) != 0
    }

    fn notify_each(&self, events: Events) {
        self.observers
            .lock()
            .notify(events, |observer| observer.notify(events));
    }

    /// Registers `observer` for changes that concern `interest`.
    ///
    /// The caller checks readiness afterwards, so that no change falls in between.
    pub fn observe(&self, observer: Weak<dyn Observer>, interest: Events, sharing: Sharing) {
        let mut list = self.observers.lock();
        list.observe(observer, interest, sharing);
        self.count.store(list.len(), Ordering::SeqCst);
    }

    /// Changes what `observer` wants to hear of.
    pub fn change_interest(&self, observer: &Weak<dyn Observer>, interest: Events) {
        self.observers.lock().change_interest(observer, interest);
    }

    /// Removes `observer`; nothing happens if it is not registered.
    pub fn forget(&self, observer: &Weak<dyn Observer>) {
        let mut list = self.observers.lock();
        list.forget(observer);
        self.count.store(list.len(), Ordering::SeqCst);
    }
}
