//! Clocks of programs.
//!
//! The machine's monotonic clock is the only one that runs; the wall clock is an offset
//! to it (`mach::time`), and CPU-time clocks are sums of the scheduler's. [`adjust`] and what
//! keeps the clock right are in `keeping`.
//!
//! Not here: timers that send signals (`task::timers`).
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod timekeeping;

pub use timekeeping::{adjust, init};

use base::{Duration, Instant};

/// Time since 1970.
pub fn wall_now() -> Duration {
    mach::time::wall_now()
}

/// The moment at which the wall clock shows `since_1970`; the start if that was before.
pub fn instant_of_wall(since_1970: Duration) -> Instant {
    Instant::START + (since_1970 - mach::time::wall_clock_offset())
}
