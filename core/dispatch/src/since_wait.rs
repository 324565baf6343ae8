//! What a thread has used of CPUs under a real-time policy since it waited last.
//!
//! A real-time thread that never waits may be in an endless loop, and keeps others from its
//! CPU: whoever limits that (RLIMIT_RTTIME) reads this. It is counted in samples, as Linux
//! counts it in ticks: only while the policy is real-time, and neither preemption nor
//! sched_yield(2) begin it anew.

use core::sync::atomic::{AtomicU64, Ordering};

/// Nanoseconds since the last wait.
#[derive(Default)]
pub struct SinceWait(AtomicU64);

impl SinceWait {
    /// It had the CPU for so long.
    pub fn count(&self, used_ns: u64) {
        self.0.fetch_add(used_ns, Ordering::Relaxed);
    }

    /// It waits.
    pub fn reset(&self) {
        self.0.store(0, Ordering::Relaxed);
    }

    /// The same in microseconds.
    pub fn micros(&self) -> u64 {
        self.0.load(Ordering::Relaxed) / 1000
    }
}
