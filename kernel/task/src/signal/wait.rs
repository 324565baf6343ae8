//! Calls that wait for signals.

use base::Instant;
use sync::{Error, Restart, Result};

use super::{Info, SignalSet, refresh, set_mask_for_call, take};
use crate::processes::Thread;

/// Blocks `mask` until a handler has run; always ends with [`Error::Interrupted`].
pub fn suspend(thread: &Thread, mask: SignalSet) -> Error {
    set_mask_for_call(thread, mask);
    pause(thread)
}

/// Waits until a handler has run; always ends with [`Error::Interrupted`].
pub fn pause(thread: &Thread) -> Error {
    while !thread.has_deliverable_signal() {
        sched::park_until(Instant::NEVER);
    }
    Error::Interrupted(Restart::IfNoHandler)
}

/// Takes one of the `wanted` signals, blocked or not; waits for it until `deadline`.
///
/// Errors: `WouldBlock` at the deadline, `Interrupted` by another signal.
pub fn await_signal(thread: &Thread, wanted: SignalSet, deadline: Instant) -> Result<Info> {
    let wanted = wanted.without(SignalSet::UNBLOCKABLE);
    thread.signals.set_awaited(wanted);
    let outcome = await_loop(thread, wanted, deadline);
    thread.signals.set_awaited(SignalSet::EMPTY);
    refresh(thread);
    outcome
}

fn await_loop(thread: &Thread, wanted: SignalSet, deadline: Instant) -> Result<Info> {
    loop {
        if let Some(info) = take(thread, wanted) {
            return Ok(info);
        }
        refresh(thread);
        if thread.has_deliverable_signal() {
            return take(thread, wanted).ok_or(Error::Interrupted(Restart::Never));
        }
        if mach::time::now() >= deadline {
            return Err(Error::WouldBlock);
        }
        sched::park_until(deadline);
    }
}
