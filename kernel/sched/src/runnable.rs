//! What the scheduler asks of those it schedules.
//!
//! What a thread is besides (a program's, with files and signals) it is not told: it has an
//! [`crate::Entity`] of each, and calls the whole one only where it gets a CPU.
//!
//! Who keeps whom alive: a thread has its entity. The entity of one that waits, for a CPU or for
//! anything else, has the whole thread, so that a queue need only name the entity. One that runs
//! has a CPU instead, and one that is over has nothing any more.

use alloc::sync::Arc;

use mach::sync::Once;

/// Something that can be given a CPU.
pub trait Runnable: Send + Sync {
    /// It runs on this CPU from now on, with its address space; gives back the one that did. The
    /// CPU is switched right afterwards.
    fn take_cpu(self: Arc<Self>) -> Arc<dyn Runnable>;
}

/// What whoever makes threads does for the running one, in rare cases.
#[derive(Clone, Copy)]
pub struct Calls {
    /// It has used more of a CPU under a real-time policy: whether it may.
    pub check_realtime_limit: fn(),
    /// It is about to wait, and there are samples of this CPU that somebody wants.
    pub give_samples: fn(),
    /// It goes on after a wait in place, in which the CPU left its address space.
    pub activate_space: fn(),
}

/// Said once at boot by who keeps threads.
static CALLS: Once<Calls> = Once::new();

/// Says what is done; the first of several who say it counts.
pub(crate) fn set_calls(calls: Calls) {
    CALLS.call_once(|| calls);
}

#[cold]
pub(crate) fn check_realtime_limit() {
    if let Some(calls) = CALLS.get() {
        (calls.check_realtime_limit)();
    }
}

#[cold]
pub(crate) fn give_samples() {
    if let Some(calls) = CALLS.get() {
        (calls.give_samples)();
    }
}

#[cold]
pub(crate) fn activate_space() {
    if let Some(calls) = CALLS.get() {
        (calls.activate_space)();
    }
}
