//! How fast the counters run.
//!
//! In this order: what the hypervisor or the processor says (CPUID 0x40000010, KVM's clock,
//! CPUID 0x15), then a measurement against channel 0 of the interval timer (8254
//! datasheet), whose rate has been 1193182 Hz since 1981. Its output is read back by
//! command, so neither an interrupt nor the speaker's port, which small machines lack, is
//! needed.

use arch::{apic, cpuid, instr};

const PIT_HERTZ: u64 = 1_193_182;
const CHANNEL_0: u16 = 0x40;
const COMMAND: u16 = 0x43;
/// Channel 0, low then high byte, mode 0: counts down once, then raises its output.
const ONE_SHOT: u8 = 0b0011_0000;
/// Latches the status of channel 0.
const READ_STATUS: u8 = 0b1110_0010;
const OUTPUT: u8 = 1 << 7;

/// About 8 ms: exact to some parts in 10^5 even where each port access takes microseconds.
const COUNTS: u16 = 10_000;
/// Reads of the port after which an interval timer is given up as absent.
const POLLS_MAX: u32 = 10_000_000;

/// The speed of the time-stamp counter.
pub(super) fn tsc_hertz() -> u64 {
    from_hypervisor()
        .or_else(super::kvmclock::tsc_hertz)
        .or_else(from_crystal)
        .or_else(measured_tsc)
        .unwrap_or(1_000_000_000)
}

fn from_hypervisor() -> Option<u64> {
    let kilohertz = cpuid::leaf(0x4000_0010, 0).eax;
    (kilohertz != 0).then(|| u64::from(kilohertz) * 1000)
}

fn from_crystal() -> Option<u64> {
    let leaf = cpuid::leaf(0x15, 0);
    let known = leaf.eax != 0 && leaf.ebx != 0 && leaf.ecx != 0;
    known.then(|| u64::from(leaf.ecx) * u64::from(leaf.ebx) / u64::from(leaf.eax))
}

/// A measurement that may be off by `doubt` ticks of `ticks`: the host may have stopped
/// this CPU just between the two steps that should happen at once.
#[derive(Clone, Copy)]
struct Measured {
    ticks: u64,
    doubt: u64,
}

impl Measured {
    /// Better than one in 200.
    fn is_sharp(self) -> bool {
        self.doubt.saturating_mul(200) < self.ticks
    }
}

/// Measurements that are made at most before the best of them is taken.
const TRIES: usize = 10;

/// The sharpest of several measurements.
fn sharpest(measure: impl Fn() -> Option<Measured>) -> Option<Measured> {
    let mut best: Option<Measured> = None;
    for _ in 0..TRIES {
        let one = measure()?;
        if best.is_none_or(|best| one.doubt < best.doubt) {
            best = Some(one);
        }
        if one.is_sharp() {
            break;
        }
    }
    best
}

fn measured_tsc() -> Option<u64> {
    let measured = sharpest(during_interval)?;
    Some(measured.ticks * PIT_HERTZ / u64::from(COUNTS))
}

/// The time-stamp counter's ticks in one interval.
fn during_interval() -> Option<Measured> {
    let before = super::cycles();
    // SAFETY: the interval timer's ports; nobody else uses it.
    unsafe {
        instr::out8(COMMAND, ONE_SHOT);
        instr::out8(CHANNEL_0, COUNTS as u8);
        instr::out8(CHANNEL_0, (COUNTS >> 8) as u8);
    }
    let start = super::cycles();
    let mut last = start;
    let mut polls = 0;
    while !has_ended() {
        last = super::cycles();
        polls += 1;
        if polls == POLLS_MAX {
            return None;
        }
    }
    let end = super::cycles();
    let doubt = start.wrapping_sub(before) + end.wrapping_sub(last);
    let ticks = end.wrapping_sub(start);
    Some(Measured { ticks, doubt }).filter(|_| ticks != 0 && polls != 0)
}

fn has_ended() -> bool {
    // SAFETY: reading the status has no effect on the counter.
    unsafe {
        instr::out8(COMMAND, READ_STATUS);
        instr::in8(CHANNEL_0) & OUTPUT != 0
    }
}

/// The speed of the local timer's counter, by the time-stamp counter.
pub(super) fn timer_hertz() -> u64 {
    let per_second = super::cycles_per_second();
    apic::init_timer(apic::SPURIOUS_VECTOR, false);
    let wait = per_second / 500;
    let measured = sharpest(|| Some(timer_during(wait)));
    apic::arm_counter(0);
    // Ticks of the timer in `wait` ticks of the time-stamp counter.
    let ticks = measured.map_or(1, |measured| measured.ticks);
    let hertz = u128::from(ticks) * u128::from(per_second) / u128::from(wait.max(1));
    (hertz as u64).max(1)
}

/// The timer's ticks in `wait` ticks of the time-stamp counter.
fn timer_during(wait: u64) -> Measured {
    let before = super::cycles();
    apic::arm_counter(u32::MAX);
    let start = super::cycles();
    while super::cycles().wrapping_sub(start) < wait {
        core::hint::spin_loop();
    }
    let last = super::cycles();
    let counted = u64::from(u32::MAX - apic::counter());
    let end = super::cycles();
    let spent = last.wrapping_sub(start).max(1);
    let doubt = start.wrapping_sub(before) + end.wrapping_sub(last);
    let scale = |ticks: u64| (u128::from(ticks) * u128::from(wait) / u128::from(spent)) as u64;
    let ticks = scale(counted);
    // The doubt in the timer's own ticks.
    let part = u128::from(doubt) * u128::from(ticks) / u128::from(wait.max(1));
    Measured {
        ticks,
        doubt: part as u64,
    }
}
