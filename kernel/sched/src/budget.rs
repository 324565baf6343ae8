//! What real-time threads had of each CPU (`dispatch::Budget`), and how much they may have.

use core::cell::Cell;
use core::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use base::{Duration, Instant};
use dispatch::{Budget, Limits};
use mach::cpu::PerCpu;

/// The period, in microseconds. The administrator's, for all CPUs.
pub static PERIOD_US: AtomicU64 = AtomicU64::new(1_000_000);
/// What real-time threads may have of it; negative for all. The administrator's, for all CPUs.
pub static RUNTIME_US: AtomicI64 = AtomicI64::new(950_000);

/// Each CPU's own.
static BUDGETS: PerCpu<Cell<Budget>> = PerCpu::new(|| Cell::new(Budget::new()));

fn with_own<R>(act: impl FnOnce(&mut Budget) -> R) -> R {
    let cell = BUDGETS.get();
    let mut budget = cell.get();
    let done = act(&mut budget);
    cell.set(budget);
    done
}

fn limits() -> Limits {
    let runtime_us = u64::try_from(RUNTIME_US.load(Ordering::Relaxed)).ok();
    Limits {
        period: Duration::from_micros(PERIOD_US.load(Ordering::Relaxed)),
        runtime: runtime_us.map(Duration::from_micros),
    }
}

/// A real-time thread begins to run here.
pub(crate) fn begin(now: Instant) {
    with_own(|budget| budget.begin(now));
}

/// A real-time thread has run here since this or [`begin`] was called last.
pub(crate) fn count(now: Instant) {
    with_own(|budget| budget.count(now));
}

/// Whether they have had their part of this CPU's period.
pub(crate) fn is_spent(now: Instant) -> bool {
    with_own(|budget| budget.is_spent(now, limits()))
}
