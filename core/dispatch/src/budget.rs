//! How much of a CPU real-time threads may have (Linux's sched_rt_runtime_us).
//!
//! A real-time thread that never waits would leave nothing to others, and nobody could end it.
//! So within each period a CPU gives real-time threads no more than their part while others
//! wait for it there; without others they have all.

use base::{Duration, Instant};

/// What real-time threads may have.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// The period.
    pub period: Duration,
    /// Their part of it; `None` for all.
    pub runtime: Option<Duration>,
}

/// What they had on one CPU.
#[derive(Clone, Copy, Debug)]
pub struct Budget {
    period_start: Instant,
    /// In the period so far.
    used_ns: u64,
    /// Up to when it is counted.
    counted: Instant,
}

impl Budget {
    /// Nothing so far.
    pub const fn new() -> Self {
        Self {
            period_start: Instant::START,
            used_ns: 0,
            counted: Instant::START,
        }
    }

    /// A real-time thread begins to run here.
    pub fn begin(&mut self, now: Instant) {
        self.counted = now;
    }

    /// A real-time thread has run here since this or [`Self::begin`] was called last.
    pub fn count(&mut self, now: Instant) {
        self.used_ns = self
            .used_ns
            .saturating_add(now.since(self.counted).as_nanos());
        self.counted = now;
    }

    /// Whether they have had their part of this CPU's period.
    pub fn is_spent(&mut self, now: Instant, limits: Limits) -> bool {
        let Some(runtime) = limits.runtime else {
            return false;
        };
        if now.since(self.period_start) >= limits.period {
            self.period_start = now;
            self.used_ns = 0;
        }
        self.used_ns >= runtime.as_nanos()
    }
}

impl Default for Budget {
    fn default() -> Self {
        Self::new()
    }
}
