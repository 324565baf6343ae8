//! The clock and each CPU's timer.
//!
//! The clock is the time-stamp counter, scaled: `(tsc - base) * multiplier >> 32` is
//! nanoseconds since the start. The timer fires once at a deadline; the kernel keeps the
//! heap of deadlines and arms the first.
//!
//! [`set_deadline`] is lazy: a timer that is armed earlier than asked stays as it is and
//! fires once for nothing, because moving it on each return to user mode costs more.

mod calibrate;
mod kvmclock;
mod rtc;
mod timer;
mod wall;

pub use timer::{on_deadline, set_deadline};
pub use wall::{set_wall_clock, wall_clock_offset};

pub(crate) use timer::{init as init_timer, interrupt};

use core::sync::atomic::{AtomicU64, Ordering};

use base::Instant;

static BASE: AtomicU64 = AtomicU64::new(0);
/// Nanoseconds per tick, as a fraction of 2^32; 0 until calibrated.
static MULTIPLIER: AtomicU64 = AtomicU64::new(0);
static HERTZ: AtomicU64 = AtomicU64::new(1_000_000_000);

/// Nanoseconds since the machine started.
#[inline]
pub fn now() -> Instant {
    let ticks = cycles().wrapping_sub(BASE.load(Ordering::Relaxed));
    let scaled = u128::from(ticks) * u128::from(MULTIPLIER.load(Ordering::Relaxed));
    Instant::from_nanos((scaled >> 32) as u64)
}

/// The time-stamp counter.
#[inline(always)]
pub fn cycles() -> u64 {
    arch::instr::rdtsc()
}

/// Ticks of the time-stamp counter per second.
pub fn cycles_per_second() -> u64 {
    HERTZ.load(Ordering::Relaxed)
}

/// The scale of [`now`]: base, multiplier, shift.
pub fn scale() -> (u64, u64, u32) {
    (
        BASE.load(Ordering::Relaxed),
        MULTIPLIER.load(Ordering::Relaxed),
        32,
    )
}

/// Learns how fast the counter runs; the clock starts at zero.
pub(crate) fn init() {
    BASE.store(cycles(), Ordering::Relaxed);
    let hertz = calibrate::tsc_hertz();
    HERTZ.store(hertz, Ordering::Relaxed);
    let multiplier = (1_000_000_000_u128 << 32) / u128::from(hertz);
    MULTIPLIER.store(multiplier as u64, Ordering::Relaxed);
}

/// Sets the wall clock from the clock chip, where there is one.
pub(crate) fn init_wall() {
    if let Some(since_1970) = rtc::since_1970() {
        set_wall_clock(since_1970);
    }
}

/// Waits, spinning, for a device that needs a moment during set-up.
pub fn spin_for(span: base::Duration) {
    let end = now() + span;
    while now() < end {
        crate::cpu::relax();
    }
}
