//! A thread's n-th allocation that may be refused is refused (Linux's `/proc/PID/fail-nth`).
//!
//! Tests go through all n of a scenario, so that each refusal is seen to be taken well. The
//! count falls with each such allocation (`mach::mem::fallible`); the one that finds 1 fails.

use core::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};

use mach::mem::fallible;

use super::try_current;

/// A thread's count.
#[derive(Default)]
pub struct FailNth {
    left: AtomicU32,
    has_failed: AtomicBool,
}

impl FailNth {
    /// How many allocations from now on the failing one is; 0 if none is to fail any more.
    pub fn left(&self) -> u32 {
        self.left.load(Relaxed)
    }

    /// Lets the `count`-th allocation from now on fail; none for 0.
    pub fn set(&self, count: u32) {
        fallible::set_injector(|| try_current().is_some_and(|thread| thread.fail_nth.is_now()));
        self.has_failed.store(false, Relaxed);
        match (self.left.swap(count, Relaxed), count) {
            (0, 1..) => fallible::arm(),
            (1.., 0) => fallible::disarm(),
            _ => {}
        }
    }

    /// Counts an allocation; whether it is the one.
    fn is_now(&self) -> bool {
        let before = self.left.load(Relaxed);
        if before == 0 {
            return false;
        }
        self.left.store(before - 1, Relaxed);
        if before > 1 {
            return false;
        }
        fallible::disarm();
        self.has_failed.store(true, Relaxed);
        true
    }

    /// Whether an allocation failed since this was asked last: then memory is not short.
    pub fn take_failure(&self) -> bool {
        self.has_failed.swap(false, Relaxed)
    }
}

impl Drop for FailNth {
    fn drop(&mut self) {
        if self.left() > 0 {
            fallible::disarm();
        }
    }
}
