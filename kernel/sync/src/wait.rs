//! Waiting for a condition, a deadline or a signal (`waitq`).
//!
//! The condition must be changed under a lock that the look takes too, or by an exchange;
//! `waitq` says why. Who finds no memory for a place in the queue looks at the condition every
//! few milliseconds.
//!
//! Lock order: the queue's lock is innermost but for the run queues.

use alloc::sync::Arc;
use core::sync::atomic::AtomicUsize;

use base::{Duration, Instant};
use mach::mem::fallible::Heap;
use mach::sync::{Native, Spin};
use sched::{Entity, Flags, current, current_counted};
use waitq::{Host, Parking, Waiters};

use crate::{Error, Restart, Result};

/// How a thread waits.
#[derive(Clone, Copy, Debug)]
pub struct Wait {
    /// Ends the wait; `Instant::NEVER` for no limit.
    pub deadline: Instant,
    /// What it ends with at the deadline.
    pub expiry: Error,
    /// Whether a signal ends the wait, and with which rule.
    pub signals: Option<Restart>,
}

impl Wait {
    /// Until it happens, or a signal comes: the usual blocking call.
    pub const INTERRUPTIBLE: Self = Self {
        deadline: Instant::NEVER,
        expiry: Error::TimedOut,
        signals: Some(Restart::IfAsked),
    };
    /// Until it happens, whatever signals come; only for what is sure to happen soon.
    pub const UNINTERRUPTIBLE: Self = Self {
        deadline: Instant::NEVER,
        expiry: Error::TimedOut,
        signals: None,
    };

    /// The same, but no longer than until `deadline`.
    pub const fn until(self, deadline: Instant) -> Self {
        Self { deadline, ..self }
    }

    /// The same, with another error at the deadline.
    pub const fn expire_as(self, expiry: Error) -> Self {
        Self { expiry, ..self }
    }

    /// Parks the current thread until it is woken, the deadline or a signal, unless
    /// `is_done`. Who wakes it makes that true first.
    pub fn park_unless(self, is_done: impl FnOnce() -> bool) -> Result<()> {
        if is_done() { Ok(()) } else { park(self) }
    }

    /// Parks the current thread once, in a queue or for want of memory in none.
    pub(crate) fn park(self, parking: Parking) -> Result<()> {
        match parking {
            Parking::Queued => park(self),
            Parking::Unqueued => look_again_soon(self),
        }
    }

    /// The same, with another rule for the interrupted call.
    pub const fn restart(self, rule: Restart) -> Self {
        Self {
            signals: Some(rule),
            ..self
        }
    }
}

/// The kernel's threads, which wait.
pub(crate) struct Kernel;

impl Host for Kernel {
    type Family = Native;
    type Memory = Heap;
    type Thread = Entity;

    fn current() -> Arc<Entity> {
        current_counted()
    }
}

/// Nobody, in the kernel's words.
pub(crate) const fn empty() -> waitq::WaitQueue<Kernel> {
    waitq::WaitQueue::new(AtomicUsize::new(0), Spin::new(Waiters::new()))
}

/// Threads that wait, first come first served.
pub struct WaitQueue(waitq::WaitQueue<Kernel>);

impl Default for WaitQueue {
    fn default() -> Self {
        Self::new()
    }
}

impl WaitQueue {
    /// An empty queue.
    pub const fn new() -> Self {
        Self(empty())
    }

    /// Blocks until `ready` yields a value.
    ///
    /// Errors: [`Wait::expiry`] at the deadline, `Interrupted` when a signal is deliverable.
    pub fn wait<T>(&self, how: Wait, mut ready: impl FnMut() -> Option<T>) -> Result<T> {
        match ready() {
            Some(value) => Ok(value),
            None => self.0.wait(&mut |parking| how.park(parking), &mut ready),
        }
    }

    /// Wakes the thread that has waited longest; false if none waits.
    #[inline]
    pub fn wake_one(&self) -> bool {
        self.0.wake_one()
    }

    /// Wakes the threads that wait now; one that comes back at once is not woken twice.
    #[inline]
    pub fn wake_all(&self) {
        self.0.wake_all();
    }
}

/// Parks a thread that found no place in the queue: nobody wakes it, so not for long.
#[cold]
fn look_again_soon(how: Wait) -> Result<()> {
    let soon = mach::time::now() + Duration::from_millis(10);
    match park(how.until(how.deadline.min(soon))) {
        Err(error) if error == how.expiry && mach::time::now() < how.deadline => Ok(()),
        other => other,
    }
}

/// Parks the current thread once, by the rules of `how`.
fn park(how: Wait) -> Result<()> {
    if let Some(rule) = how.signals {
        let flags = current().flags();
        if flags.contains(Flags::NO_WAIT) {
            return Err(Error::WouldBlock);
        }
        if flags.intersects(Flags::ENDS_WAIT) {
            return Err(Error::Interrupted(rule));
        }
    }
    if sched::park_until(how.deadline) {
        Ok(())
    } else {
        Err(how.expiry)
    }
}
