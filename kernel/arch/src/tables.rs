//! Descriptor tables: segments, the task state with its stacks, interrupt gates.
//!
//! Selectors have the values that Linux programs see in signal frames.

use core::mem::{offset_of, size_of};

use crate::area::CpuArea;

/// Selector of kernel code.
pub const KERNEL_CODE: u16 = 0x10;
pub(crate) const KERNEL_DATA: u16 = 0x18;
/// SYSRET loads SS from here + 8 and CS from here + 16 (SDM volume 2, SYSRET).
pub const SYSRET_BASE: u16 = 0x23;
const TASK_STATE: u16 = 0x40;

const SEGMENTS: usize = 10;
const CODE_64_RING_0: u64 = 0x00af_9b00_0000_ffff;
const DATA_RING_0: u64 = 0x00cf_9300_0000_ffff;
const DATA_RING_3: u64 = 0x00cf_f300_0000_ffff;
const CODE_64_RING_3: u64 = 0x00af_fb00_0000_ffff;
const AVAILABLE_TSS: u64 = 0x89 << 40;

const DEBUG_STACK: u8 = 1;
const NMI_STACK: u8 = 2;
const FATAL_STACK: u8 = 3;
const STACK_BYTES: usize = 8 << 10;

/// The task-state segment (SDM volume 3, 8.7).
#[repr(C, packed(4))]
struct TaskState {
    reserved: u32,
    /// Stack for traps from user mode.
    rsp0: u64,
    rsp1_2: [u64; 2],
    reserved2: u64,
    /// Stacks for vectors that ask for their own.
    stacks: [u64; 7],
    reserved3: [u32; 2],
    reserved4: u16,
    io_map: u16,
}

#[repr(C, align(16))]
struct OwnStack {
    bytes: [u8; STACK_BYTES - 16],
    area: u64,
    padding: u64,
}

/// One CPU's tables. They stay where they are once loaded.
#[repr(C, align(64))]
pub struct Tables {
    segments: [u64; SEGMENTS],
    task: TaskState,
    own_stacks: [OwnStack; 3],
}

impl Tables {
    /// Tables of zeros, which [`Tables::load`] fills.
    pub const fn new() -> Self {
        // SAFETY: all fields are integers, for which zero is a value.
        unsafe { core::mem::zeroed() }
    }

    /// Fills the tables and loads them into this CPU.
    ///
    /// # Safety
    /// The CPU's area is installed; nobody else uses the tables; they are never freed.
    pub unsafe fn load(&'static mut self) {
        let area = crate::area::this();
        self.task.io_map = size_of::<TaskState>() as u16;
        for (index, stack) in self.own_stacks.iter_mut().enumerate() {
            stack.area = area.this.get();
            self.task.stacks[index] = &raw const stack.area as u64;
        }
        let task = &raw const self.task as u64;
        area.task_state.set(task as usize);
        self.segments = segments(task);
        let limit = (size_of::<[u64; SEGMENTS]>() - 1) as u16;
        let pointer = Pointer {
            limit,
            base: self.segments.as_ptr() as u64,
        };
        // SAFETY: the table describes flat segments and this CPU's task state.
        unsafe { load_segments(&pointer) };
    }
}

impl Default for Tables {
    fn default() -> Self {
        Self::new()
    }
}

fn segments(task: u64) -> [u64; SEGMENTS] {
    let limit = size_of::<TaskState>() as u64 - 1;
    let low = limit | (task & 0xff_ffff) << 16 | AVAILABLE_TSS | (task >> 24 & 0xff) << 56;
    let mut table = [0; SEGMENTS];
    table[usize::from(KERNEL_CODE) / 8] = CODE_64_RING_0;
    table[usize::from(KERNEL_DATA) / 8] = DATA_RING_0;
    table[usize::from(crate::regs::USER_DATA) / 8] = DATA_RING_3;
    table[usize::from(crate::regs::USER_CODE) / 8] = CODE_64_RING_3;
    table[usize::from(TASK_STATE) / 8] = low;
    table[usize::from(TASK_STATE) / 8 + 1] = task >> 32;
    table
}

/// Names the stack on which the running thread enters the kernel.
pub fn set_kernel_stack(area: &CpuArea, top: u64) {
    area.kernel_stack.set(top);
    let rsp0 = area.task_state.get() + offset_of!(TaskState, rsp0);
    // SAFETY: the area names this CPU's task state, which only this CPU writes.
    unsafe { (rsp0 as *mut u64).write_unaligned(top) }
}

#[repr(C, packed)]
struct Pointer {
    limit: u16,
    base: u64,
}

unsafe fn load_segments(pointer: &Pointer) {
    // SAFETY: the caller's table holds the selectors that are loaded here. GS and FS keep
    // their bases: only null selectors are loaded into DS and ES, none into FS and GS.
    unsafe {
        core::arch::asm!(
            "lgdt [{pointer}]",
            "push {code}",
            "lea {scratch}, [rip + 2f]",
            "push {scratch}",
            "retfq",
            "2:",
            "mov ss, {data:e}",
            "mov ds, {null:e}",
            "mov es, {null:e}",
            "ltr {task:x}",
            pointer = in(reg) pointer,
            code = const KERNEL_CODE,
            scratch = out(reg) _,
            data = in(reg) u32::from(KERNEL_DATA),
            null = in(reg) 0u32,
            task = in(reg) TASK_STATE,
        );
    }
}

#[repr(C)]
#[derive(Clone, Copy)]
struct Gate {
    low: u64,
    high: u64,
}

const PRESENT_INTERRUPT_GATE: u64 = 0x8e << 40;
const RING_3: u64 = 3 << 45;
const BREAKPOINT: usize = 3;
const OVERFLOW: usize = 4;

/// The interrupt descriptor table, which all CPUs load.
static mut GATES: [Gate; 256] = [Gate { low: 0, high: 0 }; 256];

fn gate(vector: usize, stub: u64) -> Gate {
    let stack = match vector {
        1 => DEBUG_STACK,
        2 => NMI_STACK,
        8 | 18 => FATAL_STACK,
        _ => 0,
    };
    let ring = if vector == BREAKPOINT || vector == OVERFLOW {
        RING_3
    } else {
        0
    };
    let low = (stub & 0xffff)
        | u64::from(KERNEL_CODE) << 16
        | u64::from(stack) << 32
        | PRESENT_INTERRUPT_GATE
        | ring
        | (stub >> 16 & 0xffff) << 48;
    Gate {
        low,
        high: stub >> 32,
    }
}

/// Fills the interrupt descriptor table that all CPUs share.
///
/// # Safety
/// Called once, before any CPU loads it.
#[cfg(target_os = "none")]
pub unsafe fn fill_gates() {
    use crate::trap::{STUB_BYTES, trap_stubs};
    let first = trap_stubs as *const () as u64;
    for vector in 0..256 {
        let stub = first + (vector * STUB_BYTES) as u64;
        // SAFETY: nobody reads the table yet.
        unsafe {
            (&raw mut GATES)
                .cast::<Gate>()
                .add(vector)
                .write(gate(vector, stub))
        };
    }
}

/// Loads the interrupt descriptor table into this CPU.
///
/// # Safety
/// The table is filled, and this CPU's segments are loaded.
pub unsafe fn load_gates() {
    let limit = (size_of::<[Gate; 256]>() - 1) as u16;
    let pointer = Pointer {
        limit,
        base: &raw const GATES as u64,
    };
    // SAFETY: the table has 256 valid gates.
    unsafe { core::arch::asm!("lidt [{}]", in(reg) &pointer, options(nostack, readonly)) }
}

/// Ends the machine: an exception with an empty table is a shutdown.
///
/// # Safety
/// Nothing is to be saved any more.
pub unsafe fn triple_fault() -> ! {
    let pointer = Pointer { limit: 0, base: 0 };
    // SAFETY: the caller wants the machine to end.
    unsafe {
        core::arch::asm!("lidt [{}]", "int3", "2: hlt", "jmp 2b", in(reg) &pointer, options(noreturn))
    }
}
