//! The system-call entry: about fifty instructions there and back.
//!
//! Hazards of SYSCALL and SYSRET, and what is done about each:
//! - SYSCALL changes no stack: GS is swapped first, and the stack is taken from the CPU's
//!   area; interrupts are masked (SFMASK) until then. Exceptions that cannot be masked have
//!   stacks of their own ([`crate::trap`]).
//! - DF, TF, NT, AC and IF of the program are cleared on entry by SFMASK.
//! - SYSRET to a non-canonical RCX faults in ring 0 on some processors: an address outside
//!   the lower half goes the long way, by IRETQ.
//! - SYSRET cannot restore RF and steps oddly with TF: both go the long way.
//! - RCX and R11 are lost to the program as the ABI says; all other registers come back.
//!   `rbx`, `rbp`, `r12` to `r15` are preserved by the handler, so the short way does not
//!   load them; [`UserRegs::restore_all`](crate::UserRegs::restore_all) asks for the long way.

use core::arch::naked_asm;
use core::mem::offset_of;

use crate::regs::{FIXED_FLAGS, USER_CODE, USER_DATA, USER_FLAGS, UserRegs};
use crate::{area, msr, tables, trap};

const EFER_SCE: u64 = 1;
const TF: u64 = 1 << 8;
const RF: u64 = 1 << 16;
/// Flags with which SYSRET may return.
const SHORT_WAY_FLAGS: u64 = (USER_FLAGS | FIXED_FLAGS) & !(TF | RF);
/// Carry to overflow, NT, RF and AC are cleared on entry.
const SFMASK: u64 = 0x0005_7fd5;

/// Makes SYSCALL enter the kernel on this CPU.
///
/// # Safety
/// The CPU's tables are loaded and its area is installed.
pub unsafe fn init() {
    let star = u64::from(tables::SYSRET_BASE) << 48 | u64::from(tables::KERNEL_CODE) << 32;
    // SAFETY: every x86-64 processor has these registers; the entry is the function below.
    unsafe {
        msr::write(msr::STAR, star);
        msr::write(msr::LSTAR, entry as *const () as u64);
        msr::write(msr::SFMASK, SFMASK);
        msr::write(msr::EFER, msr::read(msr::EFER) | EFER_SCE);
    }
}

#[unsafe(naked)]
unsafe extern "C" fn entry() {
    naked_asm!(
        "swapgs",
        "mov gs:[{user_stack}], rsp",
        "mov rsp, gs:[{kernel_stack}]",
        "push {user_data}",
        "push qword ptr gs:[{user_stack}]",
        "push r11",
        "push {user_code}",
        "push rcx",
        "push rax",
        "push rax",
        "push rdi",
        "push rsi",
        "push rdx",
        "push rcx",
        "push r8",
        "push r9",
        "push r10",
        "push r11",
        "push rbx",
        "push rbp",
        "push r12",
        "push r13",
        "push r14",
        "push r15",
        "push 0",
        "mov rdi, rsp",
        "call qword ptr [rip + {handler}]",
        // The long way if the frame or the CPU asks for it.
        "mov eax, gs:[{return_work}]",
        "or rax, [rsp]",
        "jnz 2f",
        "mov rcx, [rsp + {rip}]",
        "mov r11, [rsp + {rflags}]",
        "mov rax, rcx",
        "shr rax, {user_bits}",
        "jnz 2f",
        "test r11d, {long_way_flags}",
        "jnz 2f",
        "or r11d, {fixed_flags}",
        "mov rax, [rsp + {rax}]",
        "mov rdi, [rsp + {rdi}]",
        "mov rsi, [rsp + {rsi}]",
        "mov rdx, [rsp + {rdx}]",
        "mov r8, [rsp + {r8}]",
        "mov r9, [rsp + {r9}]",
        "mov r10, [rsp + {r10}]",
        "mov rsp, [rsp + {rsp}]",
        "swapgs",
        "sysretq",
        "2:",
        "mov rdi, rsp",
        "call qword ptr [rip + {long_way}]",
        "jmp {user_exit}",
        user_stack = const area::USER_STACK,
        kernel_stack = const area::KERNEL_STACK,
        return_work = const area::RETURN_WORK,
        user_data = const USER_DATA,
        user_code = const USER_CODE,
        user_bits = const crate::layout::USER_BITS,
        fixed_flags = const FIXED_FLAGS,
        long_way_flags = const !SHORT_WAY_FLAGS as u32 as i32,
        handler = sym trap::SYSCALL,
        long_way = sym trap::RETURN_WORK,
        user_exit = sym trap::user_exit,
        rip = const offset_of!(UserRegs, rip),
        rflags = const offset_of!(UserRegs, rflags),
        rsp = const offset_of!(UserRegs, rsp),
        rax = const offset_of!(UserRegs, rax),
        rdi = const offset_of!(UserRegs, rdi),
        rsi = const offset_of!(UserRegs, rsi),
        rdx = const offset_of!(UserRegs, rdx),
        r8 = const offset_of!(UserRegs, r8),
        r9 = const offset_of!(UserRegs, r9),
        r10 = const offset_of!(UserRegs, r10),
    )
}
