//! A wake-up that is kept until the lock of its shard is free.
//!
//! The problem: within loopback a program's call wakes another program, which wants the same
//! shard first of all. If another CPU is free for it, it comes while the call still has the lock,
//! and begins with a wait: with each request, and again with each reply.
//!
//! The idea: the first socket that the stack wakes during a program's call is told once the lock has
//! been given back. What is known of the socket changes at once ([`Waiter::note`]), so
//! whoever looks meanwhile sees it, and hears of it once more. A call that has news for further
//! sockets is rare, and those are told at once.
//!
//! Frames from elsewhere are another matter: many come at a time, and whom one of them wakes
//! need not wait for the last ([`super::locked`]). Then nothing is kept.

use alloc::sync::Arc;

use super::waiter::Waiter;

/// What somebody is still to be told; they are told when this is dropped.
pub(crate) struct Wake {
    waiter: Arc<Waiter>,
    events: inet::Events,
}

impl Wake {
    /// Keeps a wake-up in `place`, or tells at once if there is one for somebody else.
    #[inline(never)]
    pub(crate) fn keep(place: &mut Option<Self>, waiter: &Arc<Waiter>, events: inet::Events) {
        match place {
            None => {
                let waiter = waiter.clone();
                *place = Some(Self { waiter, events });
            }
            Some(kept) if Arc::ptr_eq(&kept.waiter, waiter) => kept.events |= events,
            Some(_) => waiter.notify(events),
        }
    }
}

impl Drop for Wake {
    fn drop(&mut self) {
        self.waiter.notify(self.events);
    }
}
