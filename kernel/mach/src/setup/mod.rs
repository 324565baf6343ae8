//! From the entry code to the kernel's `main`: the order in which the machine is set up.
//!
//! This is above all other modules: what one of them needs of a higher one is handed to it
//! here. `others` does the same for the CPUs that did not boot.

mod smp;

pub use smp::start_secondary_cpus;

use arch::{area, cpuid, fpu, instr, switch, syscall, tables};
use base::CpuId;

use crate::vector::Vector;
use crate::{
    boot, console, cpu, irq, log, mem, numa, random, speculation, time, topology, trap, vdso,
};

const CR4_UMIP: u64 = 1 << 11;
const CR4_SMEP: u64 = 1 << 20;
const CR4_SMAP: u64 = 1 << 21;

/// Those of CPU 0, before there is a heap.
static mut BOOT_TABLES: tables::Tables = tables::Tables::new();

unsafe extern "Rust" {
    /// The kernel's `main`, defined by the image: runs once, on the first CPU.
    safe fn kernel_main() -> !;
}

/// The first Rust code, on the boot stack: what the entry code calls.
///
/// # Safety
/// Called once, by the entry code of `arch::boot`.
#[unsafe(no_mangle)]
unsafe extern "C" fn mach_start(door: u64, address: u64) -> ! {
    // SAFETY: called once, with what the entry code found.
    unsafe {
        area::install(0);
        tables::fill_gates();
        arch::fixup::enable_smap_sites(cpuid::has_smap());
        set_up_cpu((&raw mut BOOT_TABLES).as_mut_unchecked());
        tables::set_kernel_stack(area::this(), arch::boot::stack_top());
        trap::init();
        log::init();
        console::init();
        let info = boot::init(door, address);
        speculation::init(info);
        crate::sync::init();
        speculation::set_up_cpu();
        mem::init(&info.memory, info.has_word("frames=shuffle"));
        move_to_guarded_stack()
    }
}

/// Leaves the boot stack, which has no guard page, for one that has.
///
/// # Safety
/// Called once; what is on the boot stack is never returned to.
unsafe fn move_to_guarded_stack() -> ! {
    let stack = mem::KernelStack::new().expect("memory for the first stack");
    let top = stack.top();
    core::mem::forget(stack);
    let mut boot_stack = 0;
    // SAFETY: the stack is new, and the CPU keeps it.
    unsafe {
        let start = arch::switch::prepare(top, on_guarded_stack, 0, 0);
        arch::switch::switch(&raw mut boot_stack, start);
    }
    unreachable!("nobody knows the boot stack any more")
}

extern "C" fn on_guarded_stack(_: usize, _: usize) -> ! {
    // SAFETY: memory is mapped and the gates are loaded.
    unsafe { arch::apic::init(boot::info().allows_x2apic()) };
    settle_cpu(CpuId(0));
    bind_vectors();
    time::init();
    vdso::init(time::shown);
    time::init_wall();
    time::init_timer(true);
    random::init();
    irq::silence_pics();
    irq::init_pins(topology::get().io_apics());
    kernel_main()
}

/// Binds the kernel's own vectors.
fn bind_vectors() {
    irq::bind(Vector::TIMER, time::interrupt, 0);
    irq::bind(Vector::KICK, |_| (), 0);
    irq::bind(Vector::NAP, |_| (), 0);
    irq::bind(Vector::SERVICE, cpu::service_interrupt, 0);
}

/// Notes the number of the CPU that runs this on the APIC bus; with that its node is known.
fn settle_cpu(id: CpuId) {
    cpu::record(id, arch::apic::id());
    let node = numa::node_of(id);
    mem::settle(node);
    if cpuid::has_rdtscp() || cpuid::has_rdpid() {
        let number = u64::from(node.0) << ::vdso::field::NODE_SHIFT | u64::from(id.0);
        // SAFETY: the processor has the register, which only programs read, in the vDSO.
        unsafe { arch::msr::write(arch::msr::TSC_AUX, number) };
    }
}

/// Sets up what every CPU has for itself.
///
/// # Safety
/// Called once on each CPU, after its area is installed, with tables of its own.
unsafe fn set_up_cpu(own: &'static mut tables::Tables) {
    let mut features = 0;
    for (offered, bit) in [
        (cpuid::has_umip(), CR4_UMIP),
        (cpuid::has_smep(), CR4_SMEP),
        (cpuid::has_smap(), CR4_SMAP),
    ] {
        features |= if offered { bit } else { 0 };
    }
    // SAFETY: the caller vouches for the order; features are those that CPUID offers; this
    // CPU has used no write-combining memory yet.
    unsafe {
        own.load();
        tables::load_gates();
        instr::write_cr4(instr::read_cr4() | features);
        mem::enable_tags();
        switch::enable_fsgsbase();
        arch::caching::init();
        fpu::init();
        syscall::init();
    }
    speculation::set_up_cpu();
}
