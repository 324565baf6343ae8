//! The little block of memory that belongs to one CPU and that GS points to.
//!
//! The entry code reaches its fields by number; the constants below are checked against
//! the layout. A CPU writes only its own area; `Cell` suffices because the kernel is not
//! preempted.

use core::cell::Cell;
use core::mem::offset_of;

use base::CPUS_MAX;

/// One CPU's private words. See the invariant **GS** of the crate.
#[repr(C, align(64))]
pub struct CpuArea {
    /// The area's own address.
    pub this: Cell<u64>,
    /// The program's stack pointer while the system-call entry changes stacks.
    pub user_stack: Cell<u64>,
    /// Top of the running thread's kernel stack.
    pub kernel_stack: Cell<u64>,
    /// The CPU's number.
    pub id: Cell<u32>,
    /// Reasons for the next system call to return by the long way, as bits (owned by
    /// `mach::task`); zero in the common case.
    pub return_work: Cell<u32>,
    /// The running context (owned by `mach::task`).
    pub context: Cell<usize>,
    /// The context whose vector registers this CPU holds (owned by `mach::task`).
    pub fpu_owner: Cell<usize>,
    /// The context that was left by the last switch (owned by `mach::task`).
    pub previous: Cell<usize>,
    /// Address of the CPU's task-state segment.
    pub task_state: Cell<usize>,
    /// Bit 0: KVM ends the interrupt in service by itself (owned by `apic`).
    pub ends_itself: Cell<u32>,
}

/// `CpuArea::user_stack` for the assembler.
pub const USER_STACK: usize = offset_of!(CpuArea, user_stack);
/// `CpuArea::kernel_stack` for the assembler.
pub const KERNEL_STACK: usize = offset_of!(CpuArea, kernel_stack);
/// `CpuArea::return_work` for the assembler.
pub const RETURN_WORK: usize = offset_of!(CpuArea, return_work);

impl CpuArea {
    const fn new() -> Self {
        Self {
            this: Cell::new(0),
            user_stack: Cell::new(0),
            kernel_stack: Cell::new(0),
            id: Cell::new(0),
            return_work: Cell::new(0),
            context: Cell::new(0),
            fpu_owner: Cell::new(0),
            previous: Cell::new(0),
            task_state: Cell::new(0),
            ends_itself: Cell::new(0),
        }
    }
}

struct Areas([CpuArea; CPUS_MAX]);

// SAFETY: each area is touched by its own CPU alone, see the module's theory.
unsafe impl Sync for Areas {}

/// Each CPU's own, where its GS base points: it is there before any heap.
static AREAS: Areas = Areas([const { CpuArea::new() }; CPUS_MAX]);

/// Points GS to the area of CPU `id` and gives it its number.
///
/// # Safety
/// Called once on each CPU, with a number below [`CPUS_MAX`] that no other CPU has.
pub unsafe fn install(id: u32) {
    let area = &AREAS.0[id as usize];
    let address = core::ptr::from_ref(area) as u64;
    area.this.set(address);
    area.id.set(id);
    // SAFETY: the area is static and has the layout that the entry code expects.
    unsafe {
        crate::msr::write(crate::msr::GS_BASE, address);
        crate::msr::write(crate::msr::KERNEL_GS_BASE, 0);
    }
}

/// This CPU's area.
///
/// The reference must not be kept across a context switch: the thread may then run on
/// another CPU.
#[inline(always)]
pub fn this() -> &'static CpuArea {
    let address: *const CpuArea;
    // SAFETY: by the invariant **GS** the first word of the area is its own address.
    unsafe {
        core::arch::asm!("mov {}, gs:[0]", out(reg) address,
            options(nostack, preserves_flags, readonly));
        &*address
    }
}

/// Takes KVM's word that the interrupt in service needs no acknowledgement; false if it did
/// not give it.
#[inline(always)]
pub fn take_ends_itself() -> bool {
    let taken: u8;
    // SAFETY: by the invariant **GS** the word is this CPU's. The hypervisor changes it while
    // the CPU does not run, hence never within the instruction.
    unsafe {
        core::arch::asm!("btr dword ptr gs:[{}], 0", "setc {}",
            const offset_of!(CpuArea, ends_itself), out(reg_byte) taken, options(nostack));
    }
    taken != 0
}

/// This CPU's number.
#[inline(always)]
pub fn cpu() -> u32 {
    cpu_index() as u32
}

/// This CPU's number as an index: a 32-bit load clears the register's upper half.
#[inline(always)]
pub fn cpu_index() -> usize {
    let id: usize;
    // SAFETY: by the invariant **GS** the word at this offset is the CPU's number.
    unsafe {
        core::arch::asm!("mov {:e}, gs:[{}]", out(reg) id, const offset_of!(CpuArea, id),
            options(nostack, preserves_flags, readonly));
    }
    id
}
