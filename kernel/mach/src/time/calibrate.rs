//! How fast the counters run, and how far that may be off.
//!
//! What the hypervisor or the processor says is taken at once (CPUID 0x40000010, KVM's
//! clock, CPUID 0x15); else the counter is measured against the best reference, and if the
//! machine has none, for two seconds against the clock chip. A machine without any of
//! them gets the processor's nominal frequency, or 1 GHz, and its log says so. Whatever is
//! found is corrected by the discipline as soon as that knows better.

use arch::{apic, cpuid};
use timekeeping::{Calibration, Rate, Reading, Reference, SECOND_NS};

use super::reference::Device;
use super::{kvmclock, rtc};

/// Hypervisors know the frequency by a measurement of their own.
const SAID_DOUBT_PPB: u64 = 500_000;
/// A guess may be anything.
const GUESS_DOUBT_PPB: u64 = 1_000_000_000;
const LAST_RESORT_HERTZ: u64 = 1_000_000_000;
/// Less than this is worth a line in the log.
const BLUNT_PPB: u64 = 2_000_000;

/// The speed of the time-stamp counter, and the device that the clock is to follow.
pub(super) fn tsc() -> (Rate, Option<Device>) {
    let mut devices = Device::all();
    let said = from_hypervisor()
        .or_else(kvmclock::tsc_hertz)
        .or_else(from_crystal);
    if let Some(hertz) = said {
        let rate = Rate {
            hertz,
            doubt_ppb: SAID_DOUBT_PPB,
        };
        return (rate, devices.next());
    }
    let measured = devices.find_map(|device| Some((measure(device)?, Some(device))));
    let (rate, device) = measured.unwrap_or_else(|| (without_reference(), None));
    if rate.doubt_ppb > BLUNT_PPB {
        let ppm = rate.doubt_ppb / 1000;
        crate::klog!("clock: {} Hz may be off by {ppm} ppm", rate.hertz);
    }
    (rate, device)
}

fn measure(device: Device) -> Option<Rate> {
    calibrate(device.reference(), || device.read())
}

/// Reads until the rate is sharp; the best there was if the host leaves no quiet moment.
fn calibrate(reference: Reference, read: impl Fn() -> Reading) -> Option<Rate> {
    let mut calibration = Calibration::new(reference);
    while !calibration.is_hopeless() {
        if let Some(rate) = calibration.take(read()) {
            return Some(rate);
        }
    }
    calibration.best()
}

fn without_reference() -> Rate {
    rtc::tsc_rate().unwrap_or_else(|| Rate {
        hertz: nominal().unwrap_or(LAST_RESORT_HERTZ),
        doubt_ppb: GUESS_DOUBT_PPB,
    })
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

fn nominal() -> Option<u64> {
    let megahertz = cpuid::leaf(0x16, 0).eax & 0xffff;
    (megahertz != 0).then(|| u64::from(megahertz) * 1_000_000)
}

/// The counter of the local timer counts down from here, and would stop at zero.
const TIMER_START: u32 = u32::MAX;

/// Ticks of the local timer's counter per tick of the time-stamp counter, as a fraction of
/// 2^32.
///
/// The counter takes the reference's part, with any speed: only the ratio is wanted.
pub(super) fn timer_per_tick() -> u64 {
    apic::init_timer(apic::SPURIOUS_VECTOR, false);
    apic::arm_counter(TIMER_START);
    let reference = Reference {
        hertz: SECOND_NS,
        bits: 32,
    };
    let read = || super::reference::bracketed(|| u64::from(TIMER_START - apic::counter()));
    let measured = calibrate(reference, read);
    apic::arm_counter(0);
    let Some(rate) = measured else {
        crate::klog!("clock: the local timer does not count");
        return 1 << 32;
    };
    ((u128::from(SECOND_NS) << 32) / u128::from(rate.hertz)) as u64
}
