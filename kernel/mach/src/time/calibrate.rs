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

fn measured_tsc() -> Option<u64> {
    let ticks = during_interval(super::cycles)?;
    Some(ticks * PIT_HERTZ / u64::from(COUNTS))
}

/// Reads `counter` before and after the interval; the difference.
fn during_interval(counter: fn() -> u64) -> Option<u64> {
    // SAFETY: the interval timer's ports; nobody else uses it.
    unsafe {
        instr::out8(COMMAND, ONE_SHOT);
        instr::out8(CHANNEL_0, COUNTS as u8);
        instr::out8(CHANNEL_0, (COUNTS >> 8) as u8);
    }
    let start = counter();
    let mut polls = 0;
    while !has_ended() {
        polls += 1;
        if polls == POLLS_MAX {
            return None;
        }
    }
    Some(counter().wrapping_sub(start)).filter(|&ticks| ticks != 0 && polls != 0)
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
    let wait = per_second / 500;
    apic::init_timer(apic::SPURIOUS_VECTOR, false);
    apic::arm_counter(u32::MAX);
    let start = super::cycles();
    while super::cycles().wrapping_sub(start) < wait {
        core::hint::spin_loop();
    }
    let spent = super::cycles().wrapping_sub(start);
    let ticks = u64::from(u32::MAX - apic::counter());
    apic::arm_counter(0);
    let hertz = u128::from(ticks) * u128::from(per_second) / u128::from(spent.max(1));
    (hertz as u64).max(1)
}
