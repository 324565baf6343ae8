//! Starting the secondary CPUs (SDM volume 3, 9.4: INIT, then STARTUP).

use alloc::boxed::Box;
use core::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

use arch::tables::Tables;
use base::{CpuId, Duration, PAGE_SHIFT, PhysAddr};

use crate::cpu::{self, MAX_CPUS};
use crate::mem::{self, KernelStack};
use crate::{boot, klog, time, topology};

const AFTER_INIT: Duration = Duration::from_micros(200);
const AFTER_STARTUP: Duration = Duration::from_micros(200);
/// A CPU that does not come by then is left out.
const PATIENCE: Duration = Duration::from_millis(500);

/// Where the code for them may lie: above the real mode's vectors, where real mode reaches.
const FIRST_PAGE: PhysAddr = PhysAddr(0x1000);
const LOW_MEMORY_END: PhysAddr = PhysAddr(0xa_0000);

/// Where the CPU that starts goes: it has nothing but its stack.
static ENTRY: AtomicUsize = AtomicUsize::new(0);
/// The number of the CPU that is being started. They are started one by one.
static STARTING: AtomicU32 = AtomicU32::new(0);

/// Starts every other CPU that the firmware lists; each runs `entry` once its tables, its
/// APIC and its timer are set up. Returns when all that answer are counted.
pub fn start_secondary_cpus(entry: fn() -> !) {
    ENTRY.store(entry as usize, Ordering::Release);
    let me = arch::apic::id();
    let Some(page) = boot::info().memory.free_page(FIRST_PAGE, LOW_MEMORY_END) else {
        klog!("one CPU alone runs: no page of low memory is free");
        return;
    };
    let others = topology::get()
        .cpus()
        .iter()
        .filter(|&&apic_id| apic_id != me);
    for &apic_id in others.take(MAX_CPUS - 1) {
        if !start(apic_id, page) {
            klog!("CPU {apic_id} stays off: it does not come");
        }
    }
    crate::sync::nap_in_waits(time::nap);
}

/// Starts one CPU by code in the free page at `page`; whether it came.
fn start(apic_id: u32, page: PhysAddr) -> bool {
    let number = CpuId(cpu::count() as u32);
    mem::add_cpu(number);
    crate::sync::add_cpu(number);
    crate::irq::add_cpu(number);
    let Some(stack) = KernelStack::new() else {
        return false;
    };
    STARTING.store(number.0, Ordering::Release);
    let has_come = || cpu::count() > number.index();
    let startup = (page.0 >> PAGE_SHIFT) as u8;
    // SAFETY: CPUs are started one after the other, and no memory below 1 MiB is
    // given out, so that the page is nobody's.
    unsafe {
        arch::boot::prepare_trampoline(page.0, stack.top());
        arch::apic::send_init(apic_id);
        time::spin_for(AFTER_INIT);
        arch::apic::send_startup(apic_id, startup);
        if !comes_within(AFTER_STARTUP, has_come) {
            arch::apic::send_startup(apic_id, startup);
        }
    }
    let came = comes_within(PATIENCE, has_come);
    if !came {
        // SAFETY: it stops where it is, and the next one may have its number.
        unsafe { arch::apic::send_init(apic_id) };
    }
    // The CPU keeps it, even one that came half way.
    core::mem::forget(stack);
    came
}

fn comes_within(patience: Duration, has_come: impl Fn() -> bool) -> bool {
    let end = time::now() + patience;
    while !has_come() && time::now() < end {
        cpu::relax();
    }
    has_come()
}

/// Tables for a CPU, made in place because they are larger than its stack.
fn own_tables() -> &'static mut Tables {
    let tables = Box::<Tables>::new_zeroed();
    // SAFETY: all their fields are integers, for which zero is a value.
    Box::leak(unsafe { tables.assume_init() })
}

/// The first Rust code of another CPU.
///
/// # Safety
/// Called by the entry code of `arch::boot`, on a stack of its own.
#[unsafe(no_mangle)]
unsafe extern "C" fn mach_start_ap() -> ! {
    let id = STARTING.load(Ordering::Acquire);
    // SAFETY: the number is new, and the tables are this CPU's alone.
    unsafe {
        arch::area::install(id);
        mem::enter_kernel_table();
        super::set_up_cpu(own_tables());
        arch::apic::init(boot::info().allows_x2apic());
    }
    super::settle_cpu(CpuId(id));
    time::init_timer(false);
    cpu::set_count(id as usize + 1);
    // SAFETY: `start_secondary_cpus` stored a function of this type.
    let entry = unsafe { core::mem::transmute::<usize, fn() -> !>(ENTRY.load(Ordering::Acquire)) };
    entry()
}
