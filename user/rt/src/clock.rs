//! A clock for who asks many times in a microsecond.
//!
//! The system's clock costs some fifty instructions a look. Between two looks the processor's counter says
//! whether enough time has passed for another: so what this clock says is at most [`STALE_TICKS`] of the counter
//! old, which no timer of a network stack notices. Only that difference is used, so it does not matter how
//! fast the counter runs; one that jumps, as between CPUs, causes a look.

use core::arch::x86_64::_rdtsc;

use crate::monotonic_nanos;

/// Some ten microseconds.
const STALE_TICKS: u64 = 1 << 15;

/// See the module.
#[derive(Debug)]
pub struct Clock {
    looked_at: u64,
    nanos: u64,
}

impl Clock {
    /// One that has never been looked at.
    pub const fn new() -> Self {
        Self {
            looked_at: 0,
            nanos: 0,
        }
    }

    /// Nanoseconds of the monotonic clock, which never go back.
    #[inline]
    pub fn now(&mut self) -> u64 {
        // SAFETY: every x86-64 processor has the counter.
        let ticks = unsafe { _rdtsc() };
        if self.nanos == 0 || ticks.wrapping_sub(self.looked_at) > STALE_TICKS {
            self.looked_at = ticks;
            self.nanos = monotonic_nanos();
        }
        self.nanos
    }
}

impl Default for Clock {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_runs_on_beside_the_systems() {
        let mut clock = Clock::new();
        let first = clock.now();
        let begin = monotonic_nanos();
        while monotonic_nanos() < begin + 5_000_000 {}
        assert!(first != 0 && clock.now() >= begin + 5_000_000 - 1_000_000);
    }
}
