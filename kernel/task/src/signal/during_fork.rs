//! Signals for many processes that come while one of them forks: the child gets them too.
//!
//! Linux does the same since 4.19; before, it made the call again, and a process that was sent
//! signals faster than it forked never had a child.
//!
//! A signal is noted for the child under the lock under which it becomes pending for the parent, and
//! a fork begins under that lock. So what the parent has taken before, its child is not sent.

use alloc::sync::Arc;

use sync::{Error, Restart, Result};

use super::pending::nameless;
use super::send::send_to_process;
use super::state::refresh;
use super::{Signal, SignalSet};
use crate::processes::{Process, Thread};

/// A fork that is under way.
pub struct DuringFork<'a>(&'a Thread);

impl<'a> DuringFork<'a> {
    /// It begins.
    ///
    /// Errors: `Interrupted` if there is a signal to be taken first: it was sent to a process that
    /// had no such child.
    pub fn begin(thread: &'a Thread) -> Result<Self> {
        {
            let _pending = thread.process.signals.pending.lock();
            *thread.signals.during_fork.lock() = Some(SignalSet::EMPTY);
        }
        let begun = Self(thread);
        refresh(thread);
        match thread.has_deliverable_signal() {
            true => Err(Error::Interrupted(Restart::Never)),
            false => Ok(begun),
        }
    }

    /// Sends the child, which does not run yet, what has come.
    pub fn pass_to(self, child: &Process) {
        let sent = self.0.signals.during_fork.lock().take().unwrap_or_default();
        // A sweep that began late has found it already.
        let mut missed = sent.without(child.signals.pending.lock().set());
        while let Some(signal) = missed.first() {
            missed = missed.without(SignalSet::of(&[signal]));
            // A full queue loses real-time signals to groups, as in Linux.
            let _ = send_to_process(child, nameless(signal));
        }
    }
}

impl Drop for DuringFork<'_> {
    fn drop(&mut self) {
        *self.0.signals.during_fork.lock() = None;
    }
}

/// A sweep sends `signal` to the process of these threads: a child that one of them forks now gets
/// it too.
pub(super) fn note(threads: &[Arc<Thread>], signal: Signal) {
    for thread in threads {
        if let Some(sent) = &mut *thread.signals.during_fork.lock() {
            *sent = latest(*sent, signal);
        }
    }
}

/// Either a stop or a continuation is pending, never both.
fn latest(sent: SignalSet, signal: Signal) -> SignalSet {
    let opposite = match signal {
        Signal::CONT => SignalSet::STOPS,
        stop if SignalSet::STOPS.contains(stop) => SignalSet::of(&[Signal::CONT]),
        _ => SignalSet::EMPTY,
    };
    sent.without(opposite).with(signal)
}
