//! A performance counter of each CPU, where the processor has one. Which one, and what to do with
//! it, says `profile::counter`; here are its hands.

use arch::{apic, cpuid, msr};
use profile::counter::{Counter, Register, Registers, Sampler};

use super::HERTZ;
use crate::cpu::{self, MAX_CPUS};
use crate::sync::Once;
use crate::time;

/// What this machine's processors count with; they are alike.
static COUNTER: Once<Option<Counter>> = Once::new();
/// Each CPU's own.
static SAMPLERS: [Sampler; MAX_CPUS] = [const { Sampler::new() }; MAX_CPUS];

/// Looks for a counter; whether there is one.
pub(super) fn find() -> bool {
    COUNTER.call_once(|| Counter::offered(leaf, time::cycles_per_second() / u64::from(HERTZ)));
    in_use().is_some()
}

/// The counter that raises samples, if one was found. Takes no lock.
fn in_use() -> Option<&'static Counter> {
    COUNTER.get()?.as_ref()
}

/// Makes all CPUs see whether samples are wanted now.
pub(super) fn tell_all() {
    if in_use().is_some() {
        if cpu::count() > 1 {
            apic::send_nmi_to_others();
        }
        apic::send_nmi(cpu::apic_id(cpu::id()));
    }
}

/// Called by every NMI: whether a sample is due. `None` if there is no counter to say so.
pub(super) fn on_nmi(is_wanted: bool) -> Option<bool> {
    let sampler = &SAMPLERS[cpu::id().index()];
    in_use().map(|counter| sampler.on_nmi(is_wanted, counter, &ThisCpu))
}

fn leaf(number: u32) -> [u32; 4] {
    let leaf = cpuid::leaf(number, 0);
    [leaf.eax, leaf.ebx, leaf.ecx, leaf.edx]
}

struct ThisCpu;

impl Registers for ThisCpu {
    fn read(&self, register: Register) -> u64 {
        // SAFETY: **Own registers** (`profile::counter`): the processor has it.
        unsafe { msr::read(register.number()) }
    }

    fn write(&self, register: Register, value: u64) {
        // SAFETY: **Own registers**: the processor has it and takes the value, which changes
        // nothing but what is counted and when an NMI comes.
        unsafe { msr::write(register.number(), value) }
    }

    fn connect(&self) {
        apic::connect_counters();
    }

    fn disconnect(&self) {
        apic::disconnect_counters();
    }
}
