//! Waking the other CPUs (SDM volume 3, 9.4: INIT, then STARTUP).

use alloc::boxed::Box;
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};

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

static ENTRY: AtomicUsize = AtomicUsize::new(0);
static NEXT: AtomicU32 = AtomicU32::new(1);
static ARRIVED: AtomicBool = AtomicBool::new(false);

/// Starts every other CPU that the firmware lists; each runs `entry` once its tables, its
/// APIC and its timer are set up. Returns when all that answer are counted.
pub fn start_others(entry: fn() -> !) {
    ENTRY.store(entry as usize, Ordering::Release);
    let me = arch::apic::id();
    let page = boot::info().memory.free_page(FIRST_PAGE, LOW_MEMORY_END);
    let others = topology::get()
        .cpus()
        .iter()
        .filter(|&&apic_id| apic_id != me);
    for &apic_id in others.take(MAX_CPUS - 1) {
        match page {
            Some(page) => start(apic_id, page),
            None => klog!("CPU {apic_id} stays off: no page of low memory is free"),
        }
    }
}

/// Starts one CPU by code in the free page at `page`.
fn start(apic_id: u32, page: PhysAddr) {
    let Some(stack) = KernelStack::new() else {
        return;
    };
    let top = stack.top();
    // The CPU keeps it, even one that comes too late.
    core::mem::forget(stack);
    ARRIVED.store(false, Ordering::Release);
    // SAFETY: CPUs are started one after the other, and no memory below 1 MiB is
    // given out, so that the page is nobody's.
    unsafe {
        arch::boot::prepare_trampoline(page.0, top);
        arch::apic::send_init(apic_id);
        time::spin_for(AFTER_INIT);
        for _ in 0..2 {
            arch::apic::send_startup(apic_id, (page.0 >> PAGE_SHIFT) as u8);
            time::spin_for(AFTER_STARTUP);
        }
    }
    let end = time::now() + PATIENCE;
    while !ARRIVED.load(Ordering::Acquire) && time::now() < end {
        cpu::relax();
    }
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
    let id = NEXT.fetch_add(1, Ordering::Relaxed);
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
    ARRIVED.store(true, Ordering::Release);
    // SAFETY: `start_others` stored a function of this type.
    let entry = unsafe { core::mem::transmute::<usize, fn() -> !>(ENTRY.load(Ordering::Acquire)) };
    entry()
}
