//! Who hears of an object's changes.

use alloc::sync::{Arc, Weak};
use alloc::vec::Vec;

use crate::Events;

/// Somebody who wants to hear that an object changed: an entry, a polling thread.
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

struct Registration<O: ?Sized> {
    interest: Events,
    sharing: Sharing,
    observer: Weak<O>,
}

/// The observers of one object, in the order in which they came.
pub struct Observers<O: ?Sized>(Vec<Registration<O>>);

impl<O: ?Sized> Default for Observers<O> {
    fn default() -> Self {
        Self::new()
    }
}

impl<O: ?Sized> Observers<O> {
    /// Nobody.
    pub const fn new() -> Self {
        Self(Vec::new())
    }

    /// How many there are; some may be gone.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Calls `notify` for those whom `events` concern. It says whether a thread will act on it:
    /// then no other exclusive one hears of this change.
    pub fn notify(&self, events: Events, notify: impl Fn(Arc<O>) -> bool) {
        let mut is_taken = false;
        for entry in &self.0 {
            let is_exclusive = entry.sharing == Sharing::Exclusive;
            if is_exclusive && is_taken || !events.intersects(entry.interest | Events::ALWAYS) {
                continue;
            }
            if let Some(observer) = entry.observer.upgrade() {
                is_taken |= notify(observer) && is_exclusive;
            }
        }
    }

    /// Adds one for changes that concern `interest`.
    pub fn observe(&mut self, observer: Weak<O>, interest: Events, sharing: Sharing) {
        self.0.retain(|entry| entry.observer.strong_count() != 0);
        if self.0.capacity() == 0 {
            // Nearly every object has one observer: a set with many connections.
            self.0.reserve_exact(1);
        }
        self.0.push(Registration {
            interest,
            sharing,
            observer,
        });
    }

    /// Changes what `observer` wants to hear of.
    pub fn change_interest(&mut self, observer: &Weak<O>, interest: Events) {
        let entries = self.0.iter_mut();
        for entry in entries.filter(|entry| entry.observer.ptr_eq(observer)) {
            entry.interest = interest;
        }
    }

    /// Removes all, and gives those that are not gone.
    pub fn take(&mut self) -> impl Iterator<Item = Arc<O>> + use<O> {
        let all = core::mem::take(&mut self.0);
        all.into_iter().filter_map(|entry| entry.observer.upgrade())
    }

    /// Removes `observer`; nothing happens if it is not there.
    pub fn forget(&mut self, observer: &Weak<O>) {
        self.0.retain(|entry| !entry.observer.ptr_eq(observer));
    }
}
