//! Who raises the NMIs: the first of these that the machine has.
//!
//! 1. A performance counter of each CPU ([`counter`]). It needs nobody else, and leaves idle CPUs
//!    alone; emulated machines have none.
//! 2. The HPET, 3. the interval timer, by the I/O APIC.
//!
//! The I/O APIC delivers the pin of a timer as NMI to the first CPU, whose handler passes it on
//! to the others ([`pass_on`]). A broadcast by the I/O APIC would reach no CPU whose APIC is in
//! x2APIC mode: it has eight bits for the target. The local timers cannot raise NMIs: their
//! delivery mode is fixed (SDM volume 3, 12.5.1).
//!
//! Nobody acknowledges an NMI, so the timer must not wait for that: QEMU's own timers
//! never do, KVM's interval timer has to be told (`lost_tick_policy=discard`).

use core::sync::atomic::{AtomicU32, Ordering};

use base::CpuId;

use super::{HERTZ, counter, hpet, pit};
use crate::{cpu, irq};

const NONE: u32 = u32::MAX;
/// The CPU that the timer interrupts.
const FIRST: CpuId = CpuId(0);

/// The pin that raises NMIs now. The profiler is one for the machine.
static PIN: AtomicU32 = AtomicU32::new(NONE);

/// Lets NMIs come, [`HERTZ`] a second; says from where. `None` if nothing can raise them.
pub(super) fn start() -> Option<&'static str> {
    if counter::find() {
        counter::tell_all();
        return Some("counter");
    }
    let (name, pin) = match hpet::pin() {
        Some(pin) => ("hpet", pin),
        None => ("pit", pit::pin()?),
    };
    irq::route_nmi(pin, FIRST);
    PIN.store(pin, Ordering::Relaxed);
    let runs = match name {
        "hpet" => hpet::start(HERTZ),
        _ => pit::start(HERTZ),
    };
    if !runs {
        irq::mask(pin);
    }
    runs.then_some(name)
}

/// Called by every NMI: whether a sample is due, where `is_wanted` says whether any are.
pub(super) fn on_nmi(is_wanted: bool) -> bool {
    counter::on_nmi(is_wanted).unwrap_or_else(|| {
        if is_wanted {
            pass_on();
        }
        is_wanted
    })
}

/// Interrupts the other CPUs as well, where a timer interrupts the first.
fn pass_on() {
    if cpu::id() == FIRST && cpu::count() > 1 {
        arch::apic::send_nmi_to_others();
    }
}

/// Lets no more NMIs come, now that none are wanted.
pub(super) fn stop() {
    counter::tell_all();
    let pin = PIN.swap(NONE, Ordering::Relaxed);
    if pin != NONE {
        irq::mask(pin);
    }
    hpet::stop();
    if Some(pin) == pit::pin() {
        pit::stop();
    }
}
