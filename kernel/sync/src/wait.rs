//! A queue of threads that wait for a condition.
//!
//! The waiter enters the queue, checks the condition, then parks; the waker changes the
//! condition, then wakes. As the waiter checks after it is in the queue, and a wake-up
//! that comes before the park is remembered (`sched`), none is lost. Wake-ups may be
//! spurious; [`WaitQueue::wait`] checks again.
//!
//! A waker that finds the queue empty does not lock it. So the condition must be
//! changed under a lock that the check takes too, or by a sequentially consistent store:
//! a weaker one may become visible only after the look at the queue.
//!
//! Who finds no memory for a place in the queue looks at the condition every few milliseconds.
//!
//! Lock order: the queue's lock is innermost but for the run queues.

use alloc::collections::VecDeque;
use alloc::sync::Arc;
use core::sync::atomic::{AtomicUsize, Ordering};

use base::{Duration, Instant};
use mach::mem::fallible::TryPush;
use mach::sync::Spin;
use sched::{Entity, current, current_counted};

use crate::{Error, Restart, Result};

/// How a thread waits.
#[derive(Clone, Copy, Debug)]
pub struct Wait {
    /// Ends the wait with [`Error::TimedOut`]; `Instant::NEVER` for no limit.
    pub deadline: Instant,
    /// Whether a signal ends the wait, and with which rule.
    pub signals: Option<Restart>,
}

impl Wait {
    /// Until it happens, or a signal comes: the usual blocking call.
    pub const INTERRUPTIBLE: Self = Self {
        deadline: Instant::NEVER,
        signals: Some(Restart::IfAsked),
    };
    /// Until it happens, whatever signals come; only for what is sure to happen soon.
    pub const UNINTERRUPTIBLE: Self = Self {
        deadline: Instant::NEVER,
        signals: None,
    };

    /// The same, but no longer than until `deadline`.
    pub const fn until(self, deadline: Instant) -> Self {
        Self { deadline, ..self }
    }

    /// Parks the current thread until it is woken, the deadline or a signal, unless
    /// `is_done`. Who wakes it makes that true first.
    pub fn park_unless(self, is_done: impl FnOnce() -> bool) -> Result<()> {
        if is_done() { Ok(()) } else { park(self) }
    }

    /// The same, with another rule for the interrupted call.
    pub const fn restart(self, rule: Restart) -> Self {
        Self {
            signals: Some(rule),
            ..self
        }
    }
}

/// Threads that wait, first come first served.
#[derive(Default)]
pub struct WaitQueue {
    count: AtomicUsize,
    waiters: Spin<VecDeque<Arc<Entity>>>,
}

impl WaitQueue {
    /// An empty queue.
    pub const fn new() -> Self {
        Self {
            count: AtomicUsize::new(0),
            waiters: Spin::new(VecDeque::new()),
        }
    }

    /// Blocks until `ready` yields a value.
    ///
    /// Errors: `TimedOut` at the deadline, `Interrupted` when a signal is deliverable.
    pub fn wait<T>(&self, how: Wait, mut ready: impl FnMut() -> Option<T>) -> Result<T> {
        if let Some(value) = ready() {
            return Ok(value);
        }
        self.wait_slow(how, &mut ready)
    }

    fn wait_slow<T>(&self, how: Wait, ready: &mut dyn FnMut() -> Option<T>) -> Result<T> {
        loop {
            let is_in = self.enter();
            if let Some(value) = ready() {
                self.leave();
                return Ok(value);
            }
            let outcome = match is_in {
                true => park(how),
                false => look_again_soon(how),
            };
            self.leave();
            if let Some(value) = ready() {
                return Ok(value);
            }
            outcome?;
        }
    }

    /// Wakes the thread that has waited longest; false if none waits.
    pub fn wake_one(&self) -> bool {
        if self.count.load(Ordering::SeqCst) == 0 {
            return false;
        }
        let first = {
            let mut waiters = self.waiters.lock();
            let first = waiters.pop_front();
            self.count.store(waiters.len(), Ordering::SeqCst);
            first
        };
        first.is_some_and(|thread| {
            sched::wake(&thread);
            true
        })
    }

    /// Wakes the threads that wait now; one that comes back at once is not woken twice.
    pub fn wake_all(&self) {
        for _ in 0..self.count.load(Ordering::SeqCst) {
            self.wake_one();
        }
    }

    /// Puts the current thread in; false if there is no memory for that.
    fn enter(&self) -> bool {
        let mut waiters = self.waiters.lock();
        let is_in = waiters.try_push(current_counted()).is_ok();
        self.count.store(waiters.len(), Ordering::SeqCst);
        is_in
    }

    /// Removes the current thread if no waker has done so.
    fn leave(&self) {
        let mut waiters = self.waiters.lock();
        let me = current();
        waiters.retain(|thread| !core::ptr::eq(&**thread, &*me));
        self.count.store(waiters.len(), Ordering::SeqCst);
    }
}

/// Parks a thread that found no place in the queue: nobody wakes it, so not for long.
#[cold]
fn look_again_soon(how: Wait) -> Result<()> {
    let soon = mach::time::now() + Duration::from_millis(10);
    match park(how.until(how.deadline.min(soon))) {
        Err(Error::TimedOut) if mach::time::now() < how.deadline => Ok(()),
        other => other,
    }
}

/// Parks the current thread once, by the rules of `how`.
fn park(how: Wait) -> Result<()> {
    if let Some(rule) = how.signals
        && current().has_deliverable_signal()
    {
        return Err(Error::Interrupted(rule));
    }
    if sched::park_until(how.deadline) {
        Ok(())
    } else {
        Err(Error::TimedOut)
    }
}
