//! How much of a CPU real-time threads may have (Linux's sched_rt_runtime_us).
//!
//! A real-time thread that never waits would leave nothing to others, and nobody could end it.
//! So within each period a CPU gives real-time threads no more than their part while others
//! wait for it there; without others they have all.

use core::cell::Cell;
use core::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use base::{Duration, Instant};
use mach::cpu::PerCpu;

/// The period, in microseconds.
pub static PERIOD_US: AtomicU64 = AtomicU64::new(1_000_000);
/// What real-time threads may have of it; negative for all.
pub static RUNTIME_US: AtomicI64 = AtomicI64::new(950_000);

/// What they had on one CPU.
struct Used {
    period_start: Cell<Instant>,
    /// In the period so far.
    used_ns: Cell<u64>,
    /// Up to when it is counted.
    counted: Cell<Instant>,
}

static USED: PerCpu<Used> = PerCpu::new(|| Used {
    period_start: Cell::new(Instant::START),
    used_ns: Cell::new(0),
    counted: Cell::new(Instant::START),
});

/// A real-time thread begins to run here.
pub(crate) fn begin(now: Instant) {
    USED.get().counted.set(now);
}

/// A real-time thread has run here since this or [`begin`] was called last.
pub(crate) fn count(now: Instant) {
    let used = USED.get();
    let since = now.since(used.counted.replace(now));
    used.used_ns.set(used.used_ns.get() + since.as_nanos());
}

/// Whether they have had their part of this CPU's period.
pub(crate) fn is_spent(now: Instant) -> bool {
    let Ok(runtime_us) = u64::try_from(RUNTIME_US.load(Ordering::Relaxed)) else {
        return false;
    };
    let used = USED.get();
    let period = Duration::from_micros(PERIOD_US.load(Ordering::Relaxed));
    if now.since(used.period_start.get()) >= period {
        used.period_start.set(now);
        used.used_ns.set(0);
    }
    used.used_ns.get() >= runtime_us.saturating_mul(1000)
}
