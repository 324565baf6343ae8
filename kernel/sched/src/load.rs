//! The load averages of this machine.
//!
//! Every CPU that works comes by with its samples and advances them where a step is due; who
//! asks does too. An idle machine is not woken for them (`accounting::LoadAverages`).
//!
//! Lock order: innermost but for the run queues.

use core::sync::atomic::{AtomicU64, Ordering};

use accounting::{LOAD_STEP, LoadAverages};
use base::Instant;
use mach::sync::Spin;

use crate::dispatcher::runnable_count;

const STEP_NS: u64 = LOAD_STEP.as_nanos() as u64;

/// The load is the machine's.
static AVERAGES: Spin<LoadAverages> = Spin::new(LoadAverages::new());
/// When the next step is due, in nanoseconds. Whichever CPU comes first takes it.
static NEXT_NS: AtomicU64 = AtomicU64::new(STEP_NS);

/// Takes the steps that are due at `now`.
#[inline]
pub(crate) fn note(now: Instant) {
    if NEXT_NS.load(Ordering::Relaxed) <= now.as_nanos() {
        advance(now.as_nanos());
    }
}

#[cold]
fn advance(now_ns: u64) {
    let mut averages = AVERAGES.lock();
    let next_ns = NEXT_NS.load(Ordering::Relaxed);
    if next_ns <= now_ns {
        let steps = (now_ns - next_ns) / STEP_NS + 1;
        averages.advance(steps, runnable_count() as u64);
        NEXT_NS.store(next_ns + steps * STEP_NS, Ordering::Relaxed);
    }
}

/// The averages now.
pub fn averages() -> LoadAverages {
    note(mach::time::now());
    *AVERAGES.lock()
}
