//! Clocks of programs, and timers that send signals.
//!
//! The machine's monotonic clock is the only one that runs; the wall clock is an offset
//! to it (`mach::time`), and CPU-time clocks are sums of the scheduler's. A timer of any
//! of them is an entry in the deadlines of a CPU (`sched::timer`). [`adjust`] and what keeps
//! the clock right are in `keeping`.

mod keeping;
mod process;
mod signal_timer;

pub use keeping::{adjust, init};
pub use process::{Interval, ProcessTimers};
pub use signal_timer::{Base, SignalTimer, Target};

use base::{Duration, Instant};

/// Time since 1970.
pub fn wall_now() -> Duration {
    mach::time::wall_now()
}

/// The moment at which the wall clock shows `since_1970`; the start if that was before.
pub fn instant_of_wall(since_1970: Duration) -> Instant {
    Instant::START + (since_1970 - mach::time::wall_clock_offset())
}
