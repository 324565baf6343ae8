//! The clock and each CPU's timer.
//!
//! The clock is the time-stamp counter, scaled (`clock`). How fast the counter runs is
//! measured at boot (`calibrate`) and kept right by a better reference for ever (`timekeeper`,
//! by the rules of `core/timekeeping`). The timer fires once at a deadline; the kernel keeps
//! the heap of deadlines and arms the first.
//!
//! [`set_deadline`] is lazy: a timer that is armed earlier than asked stays as it is and
//! fires once for nothing, because moving it on each return to user mode costs more.

mod calibrate;
mod clock;
mod kvmclock;
mod pit;
mod pm_timer;
mod reference;
mod rtc;
mod timekeeper;
mod timer;

pub use clock::{now, raw_now, try_now};
pub use timekeeper::{adjust, follow, has_to_work_off, set_wall_clock, wall_is_after, work_off};
pub use timekeeping::{Adjusted, NtpError, Request, modes, status};
pub use timer::{affordable_interval, exit_cost, on_deadline, set_deadline};

pub(crate) use clock::shown;
pub(crate) use timekeeper::init_wall;
pub(crate) use timer::{init as init_timer, interrupt, nap};

use core::sync::atomic::{AtomicU64, Ordering};

use base::Duration;

/// How fast this machine's counters run; they are alike.
static HERTZ: AtomicU64 = AtomicU64::new(1_000_000_000);

/// The time-stamp counter.
#[inline(always)]
pub fn cycles() -> u64 {
    arch::instr::rdtsc()
}

/// Ticks of the time-stamp counter per second, as measured at boot.
pub fn cycles_per_second() -> u64 {
    HERTZ.load(Ordering::Relaxed)
}

/// Time since 1970 at the moment the machine started.
pub fn wall_clock_offset() -> Duration {
    Duration::from_nanos(clock::wall_offset_ns())
}

/// Time since 1970.
pub fn wall_now() -> Duration {
    Duration::from_nanos(clock::wall_now_ns())
}

/// Learns how fast the counter runs; the clock starts at zero.
pub(crate) fn init() {
    let base = cycles();
    let (rate, device) = calibrate::tsc();
    HERTZ.store(rate.hertz, Ordering::Relaxed);
    timekeeper::start(base, rate, device);
}

/// Waits, spinning, for a device that needs a moment during set-up.
pub fn spin_for(span: Duration) {
    let end = now() + span;
    while now() < end {
        crate::cpu::relax();
    }
}
