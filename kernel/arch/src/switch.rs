//! From one kernel stack to another, and the segment bases that go along.

use core::arch::{asm, naked_asm};
use core::sync::atomic::{AtomicBool, Ordering};

use crate::{cpuid, instr, msr};

const CR4_FSGSBASE: u64 = 1 << 16;

/// Callee-saved registers that [`switch`] leaves on a stack, lowest address first.
#[repr(C)]
struct Frame {
    r15: u64,
    r14: u64,
    r13: u64,
    r12: u64,
    rbx: u64,
    rbp: u64,
    return_to: u64,
}

/// Saves the callee-saved registers, stores the stack pointer to `*save` and continues on
/// the stack that another call of this function left at `next`.
///
/// # Safety
/// `next` is such a stack, or one from [`prepare`], and nobody runs on it.
#[unsafe(naked)]
pub unsafe extern "C" fn switch(save: *mut u64, next: u64) {
    naked_asm!(
        "push rbp",
        "push rbx",
        "push r12",
        "push r13",
        "push r14",
        "push r15",
        "mov [rdi], rsp",
        "mov rsp, rsi",
        "pop r15",
        "pop r14",
        "pop r13",
        "pop r12",
        "pop rbx",
        "pop rbp",
        "ret",
    )
}

/// The first steps of a new thread: calls the function in `r13` with `r12` and `rbx`.
#[unsafe(naked)]
extern "C" fn begin() {
    naked_asm!(
        "mov rdi, r12",
        "mov rsi, rbx",
        "xor ebp, ebp",
        "call r13",
        "ud2"
    )
}

/// Lays the first frame of a new thread below `top`, so that a switch to the returned
/// stack pointer calls `first(a, b)`.
///
/// # Safety
/// The memory below `top` is a stack that nobody uses; `top` is aligned to 16.
pub unsafe fn prepare(
    top: u64,
    first: extern "C" fn(usize, usize) -> !,
    a: usize,
    b: usize,
) -> u64 {
    let frame = (top as *mut Frame).wrapping_sub(1);
    // SAFETY: the caller vouches for the stack.
    unsafe {
        frame.write(Frame {
            r15: 0,
            r14: 0,
            r13: first as usize as u64,
            r12: a as u64,
            rbx: b as u64,
            rbp: 0,
            return_to: begin as *const () as u64,
        });
    }
    frame as u64
}

/// Whether this machine's processors have the instructions; they are alike.
static FSGSBASE: AtomicBool = AtomicBool::new(false);

fn by_instruction() -> bool {
    FSGSBASE.load(Ordering::Relaxed)
}

/// Allows the instructions that read and write segment bases, where there are any.
///
/// # Safety
/// Called while the CPU is set up, with the same answer on all CPUs.
pub unsafe fn enable_fsgsbase() {
    if cpuid::has_fsgsbase() {
        // SAFETY: CPUID offers the feature.
        unsafe { instr::write_cr4(instr::read_cr4() | CR4_FSGSBASE) };
        FSGSBASE.store(true, Ordering::Relaxed);
    }
}

/// The base of FS.
pub fn fs_base() -> u64 {
    // SAFETY: the register exists; the instruction is used only where it is enabled.
    unsafe {
        if by_instruction() {
            let base;
            asm!("rdfsbase {}", out(reg) base, options(nomem, nostack, preserves_flags));
            base
        } else {
            msr::read(msr::FS_BASE)
        }
    }
}

/// Sets the base of FS.
///
/// # Safety
/// `base` is canonical.
pub unsafe fn set_fs_base(base: u64) {
    // SAFETY: the caller vouches for the address; the kernel does not use FS.
    unsafe {
        if by_instruction() {
            asm!("wrfsbase {}", in(reg) base, options(nomem, nostack, preserves_flags));
        } else {
            msr::write(msr::FS_BASE, base);
        }
    }
}

/// The base that GS has in user mode.
pub fn user_gs_base() -> u64 {
    // SAFETY: in the kernel the program's base is in this register (invariant **GS**).
    unsafe { msr::read(msr::KERNEL_GS_BASE) }
}

/// Sets the base that GS has in user mode.
///
/// # Safety
/// `base` is canonical.
pub unsafe fn set_user_gs_base(base: u64) {
    // SAFETY: the caller vouches for the address.
    unsafe { msr::write(msr::KERNEL_GS_BASE, base) }
}
