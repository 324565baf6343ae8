//! The CPUs: who am I, how many are we, waiting, and waking each other.
//!
//! CPU 0 is the one that booted; the others are numbered in the order in which
//! [`crate::setup::start_secondary_cpus`] brings them up and are counted when they run.

mod own;
mod per_cpu;
mod service;

pub use arch::crc32c::fold as crc32c_fold;
pub use base::{CPUS_MAX as MAX_CPUS, CpuId, CpuSet};
pub use per_cpu::PerCpu;
pub use service::{register_service, request_service};

pub(crate) use own::{Line, Own, Private, own};
pub(crate) use service::{interrupt as service_interrupt, serve};

use core::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

use base::SharedCpuSet;

use crate::vector::Vector;

/// How many CPUs the machine runs.
static COUNT: AtomicUsize = AtomicUsize::new(1);
/// The same CPUs as a set.
static RUNNING: SharedCpuSet = SharedCpuSet::new(CpuSet::one(CpuId(0)));
/// Their names in interrupts.
static APIC_IDS: [AtomicU32; MAX_CPUS] = [const { AtomicU32::new(0) }; MAX_CPUS];

/// The CPU that runs this code.
#[inline(always)]
pub fn id() -> CpuId {
    CpuId(arch::area::cpu())
}

/// CPUs that run.
#[inline]
pub fn count() -> usize {
    COUNT.load(Ordering::Acquire)
}

/// The CPUs that run.
#[inline]
pub fn all() -> CpuSet {
    RUNNING.load(Ordering::Acquire)
}

/// One turn of a spin loop: serves what other CPUs ask of this one, then pauses.
#[inline]
pub fn relax() {
    service::serve();
    core::hint::spin_loop();
}

/// Opens interrupts for a moment: handlers of those that wait run now. The caller holds no lock.
pub fn take_interrupts() {
    // SAFETY: the IDT is loaded before the kernel starts, and by **Closed** no lock is held
    // that a handler could want.
    unsafe { arch::instr::enable_briefly() }
}

/// Makes `cpu` look at its run queue: ends its halt, or brings it in from user mode.
pub fn kick(cpu: CpuId) {
    arch::apic::send(apic_id(cpu), Vector::KICK.number());
}

/// What programs are told of the processor (`AT_HWCAP`, `AT_HWCAP2`): the features of
/// CPUID leaf 1 in EDX; bit 1 of the second word says that the FS and GS bases may be
/// written by instruction.
pub fn capabilities() -> (u32, u32) {
    let fsgsbase = u32::from(arch::cpuid::has_fsgsbase()) << 1;
    (arch::cpuid::leaf(1, 0).edx, fsgsbase)
}

/// The number of `cpu` on the APIC bus.
pub(crate) fn apic_id(cpu: CpuId) -> u32 {
    APIC_IDS
        .get(cpu.index())
        .map_or(0, |id| id.load(Ordering::Relaxed))
}

/// Notes the number of `cpu` on the APIC bus.
pub(crate) fn record(cpu: CpuId, apic_id: u32) {
    if let Some(slot) = APIC_IDS.get(cpu.index()) {
        slot.store(apic_id, Ordering::Relaxed);
    }
}

pub(crate) fn set_count(count: usize) {
    RUNNING.store(CpuSet::first_of(count), Ordering::Release);
    COUNT.store(count, Ordering::Release);
}
