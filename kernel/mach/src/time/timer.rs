//! The local timer of each CPU.
//!
//! Invariant **Napping**: in the midst of the kernel only interrupts of the highest class are let in. Their handlers are
//! the end of a nap, which does nothing, and service for other CPUs, which a CPU that spins gives as
//! well; what they touch was made before.

use core::cell::Cell;
use core::ops::RangeInclusive;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use base::{Duration, Instant};

use crate::cpu::PerCpu;
use crate::sync::Once;
use crate::vector::Vector;

/// When this CPU's timer will fire.
static ARMED: PerCpu<Cell<Instant>> = PerCpu::new(|| Cell::new(Instant::NEVER));
/// Said once at boot: an interrupt's handler has no argument.
static HANDLER: Once<fn()> = Once::new();
/// Whether timers are armed by a deadline; those of all CPUs are alike.
static BY_DEADLINE: AtomicBool = AtomicBool::new(false);
/// Timer ticks per nanosecond of the clock, as a fraction of 2^32. Those of all CPUs are alike.
static TICKS_PER_NANO: AtomicU64 = AtomicU64::new(1 << 32);
/// Timer ticks per tick of the time-stamp counter, as a fraction of 2^32. Those of all CPUs are
/// alike.
static PER_CYCLE: AtomicU64 = AtomicU64::new(1 << 32);

/// What arming the timer takes, in nanoseconds. On this machine.
static ARMING_NS: AtomicU64 = AtomicU64::new(0);

/// An interval is so many times as long as arming takes: with what follows, an alarm then takes
/// less than a fortieth of it.
const ARMINGS_PER_INTERVAL: u64 = 200;
/// How often the time that arming takes is measured: the host may pause us meanwhile, so that the
/// shortest counts.
const ARMINGS_MEASURED: usize = 4;

/// Says what runs when a deadline passes, with interrupts closed; once at boot.
pub fn on_deadline(handler: fn()) {
    HANDLER.call_once(|| handler);
}

/// Lets this CPU's timer fire at `deadline` or earlier.
///
/// A timer armed earlier is left alone, so asking for the same or a later deadline (or
/// [`Instant::NEVER`]) costs a comparison; the handler then finds nothing due.
#[inline]
pub fn set_deadline(deadline: Instant) {
    let armed = ARMED.get();
    if deadline < armed.get() {
        armed.set(deadline);
        arm(deadline);
    }
}

/// The shortest of the `allowed` intervals at which an alarm may go off again and again without
/// taking a share of the time that matters.
///
/// An alarm is armed, goes off and is acknowledged. That is hardly anything on a machine, some
/// microseconds under a hypervisor, and ten times as much under one that is a guest itself.
pub fn affordable_interval(allowed: RangeInclusive<Duration>) -> Duration {
    let interval = Duration::from_nanos(ARMING_NS.load(Ordering::Relaxed) * ARMINGS_PER_INTERVAL);
    interval.clamp(*allowed.start(), *allowed.end())
}

/// What an exit to KVM takes, as arming the timer is one; zero where nothing else is saved by
/// having few of them.
pub fn exit_cost() -> Duration {
    match arch::cpuid::is_under_kvm() {
        true => Duration::from_nanos(ARMING_NS.load(Ordering::Relaxed)),
        false => Duration::ZERO,
    }
}

fn measure_arming() {
    let measure = |_| {
        let before = super::now();
        arm(before + Duration::from_secs(1));
        super::now().since(before).as_nanos()
    };
    let shortest = (0..ARMINGS_MEASURED).map(measure).min().unwrap_or(0);
    ARMING_NS.store(shortest, Ordering::Relaxed);
    disarm();
}

fn disarm() {
    if BY_DEADLINE.load(Ordering::Relaxed) {
        arch::apic::arm_deadline(0);
    } else {
        arch::apic::arm_counter(0);
    }
}

fn arm(deadline: Instant) {
    let nanos = deadline.since(super::now()).as_nanos();
    let ticks =
        ((u128::from(nanos) * u128::from(TICKS_PER_NANO.load(Ordering::Relaxed))) >> 32).max(1);
    if BY_DEADLINE.load(Ordering::Relaxed) {
        arch::apic::arm_deadline(super::cycles().saturating_add(ticks as u64));
    } else {
        arch::apic::arm_counter(u32::try_from(ticks).unwrap_or(u32::MAX));
    }
}

/// Handler of [`Vector::TIMER`].
///
/// A counter that was too short for the deadline fires early; the kernel arms it again.
pub(crate) fn interrupt(_: usize) {
    ARMED.get().set(Instant::NEVER);
    if let Some(handler) = HANDLER.get() {
        handler();
    }
}

/// Halts until `span` is over or another CPU asks for service, in the midst of the kernel: any lock may be held.
/// Interrupts of lower classes wait, as they do while the kernel runs. The timer is this CPU's, and set up.
pub(crate) fn nap(span: Duration) {
    let by_deadline = BY_DEADLINE.load(Ordering::Relaxed);
    arch::instr::hold_back_interrupts(u64::from(Vector::TIMER.class()));
    arch::apic::set_timer_vector(Vector::NAP.number(), by_deadline);
    arm(super::now() + span);
    // SAFETY: the IDT is loaded, and by **Napping** the handlers that can run find nothing half changed.
    unsafe { arch::instr::enable_and_halt() }
    arch::apic::set_timer_vector(Vector::TIMER.number(), by_deadline);
    match ARMED.get().get() {
        Instant::NEVER => disarm(),
        deadline => arm(deadline),
    }
    arch::instr::hold_back_interrupts(0);
}

/// Sets this CPU's timer up; the boot CPU also measures its speed.
pub(crate) fn init(first: bool) {
    if first {
        let by_deadline = arch::cpuid::has_tsc_deadline();
        BY_DEADLINE.store(by_deadline, Ordering::Relaxed);
        if !by_deadline {
            PER_CYCLE.store(super::calibrate::timer_per_tick(), Ordering::Relaxed);
        }
        follow(super::shown().scale.multiplier);
    }
    arch::apic::init_timer(Vector::TIMER.number(), BY_DEADLINE.load(Ordering::Relaxed));
    // Made now: a nap must not allocate.
    ARMED.get().set(Instant::NEVER);
    if first {
        measure_arming();
    }
}

/// The clock's nanoseconds per tick (2^-32) changed: a timer that is armed from now on fires
/// at its deadline, not a little before, which would cost another interrupt.
pub(super) fn follow(multiplier: u64) {
    let cycles_per_nano = (1_u128 << 64).div_ceil(u128::from(multiplier.max(1)));
    let ticks = (cycles_per_nano * u128::from(PER_CYCLE.load(Ordering::Relaxed))) >> 32;
    TICKS_PER_NANO.store(ticks as u64, Ordering::Relaxed);
}
