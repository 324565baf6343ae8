//! The system-call entry: forty instructions there and back.
//!
//! The short way saves what the handler, an `extern "C"` function, may clobber, and
//! nothing else: `rbx`, `rbp` and `r12` to `r15` come back from it as they were. Whoever
//! needs them in the frame (signals, `fork`) works on the long way, which saves them first.
//! The long way is taken when the CPU's word of reasons is not zero, or when the reply is
//! one of three that no program ever sees (-514 to -512, Linux's ERESTART*): -513 says that
//! the frame holds the answer, the others that a signal ended the call.
//!
//! Hazards of SYSCALL and SYSRET, and what is done about each:
//! - SYSCALL changes no stack: GS is swapped first, and the stack is taken from the CPU's
//!   area; interrupts are masked (SFMASK) until then. Exceptions that cannot be masked have
//!   stacks of their own ([`crate::trap`]).
//! - DF, TF, NT, AC and IF of the program are cleared on entry by SFMASK.
//! - SYSRET to a non-canonical RCX faults in ring 0 on some processors. After SYSCALL it is
//!   canonical, because nothing is ever mapped in the last page of the lower half
//!   (`mach::mem::USER_END`); whoever changes `rip` asks for the long way, by IRETQ.
//! - SYSRET cannot restore RF and steps oddly with TF: SYSCALL leaves RF clear, and TF goes
//!   the long way.
//! - RCX and R11 are lost to the program as the ABI says; all other registers come back.

use core::arch::naked_asm;
use core::mem::offset_of;

use crate::regs::{COMPLETE, RESTORE, USER_CODE, USER_DATA, UserRegs};
use crate::trap::IN_FRAME;
use crate::{area, msr, tables, trap};

const EFER_SCE: u64 = 1;
const TF: u64 = 1 << 8;
/// The least of the special replies, made positive, and their number less one.
const SPECIAL_FROM: i32 = 514;
const SPECIAL_MORE: i32 = 2;
/// Bytes of the frame that the short way leaves alone.
const LEFT_OUT_BYTES: usize = offset_of!(UserRegs, rcx) + 8;
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
        "push r8",
        "push r9",
        "push r10",
        "push rbp",
        "push 0",
        "sub rsp, {left_out}",
        "mov rdi, rsp",
        "call qword ptr [rip + {handler}]",
        "lea rax, [rdx + {special_from}]",
        "cmp rax, {special_more}",
        "jbe 2f",
        "cmp dword ptr gs:[{return_work}], 0",
        "jne 3f",
        "mov rax, rdx",
        "mov r11, [rsp + {rflags}]",
        "test r11d, {tf}",
        "jnz 3f",
        // Where both ways meet: RAX and R11 are the program's.
        "5:",
        "mov rcx, [rsp + {rip}]",
        "mov rdi, [rsp + {rdi}]",
        "mov rsi, [rsp + {rsi}]",
        "mov rdx, [rsp + {rdx}]",
        "mov r8, [rsp + {r8}]",
        "mov r9, [rsp + {r9}]",
        "mov r10, [rsp + {r10}]",
        "mov rsp, [rsp + {rsp}]",
        // `speculation` may put a jump here.
        "7: swapgs",
        "sysretq",
        ".pushsection .verw_sysret, \"a\"",
        ".quad 7b",
        ".popsection",
        // The long way. First the frame is completed with what the short way leaves out: the
        // registers are the program's still, and RCX and R11 become what SYSCALL made of them.
        "2:",
        "cmp rdx, {in_frame}",
        "je 4f",
        "3:",
        "mov [rsp + {rax}], rdx",
        "4:",
        "test byte ptr [rsp + {state}], {complete}",
        "jnz 6f",
        "mov [rsp + {r15}], r15",
        "mov [rsp + {r14}], r14",
        "mov [rsp + {r13}], r13",
        "mov [rsp + {r12}], r12",
        "mov [rsp + {rbx}], rbx",
        "mov rax, [rsp + {rflags}]",
        "mov [rsp + {r11}], rax",
        "mov rax, [rsp + {rip}]",
        "mov [rsp + {rcx}], rax",
        "or qword ptr [rsp + {state}], {complete}",
        "6:",
        "mov rdi, rsp",
        "call qword ptr [rip + {long_way}]",
        // SYSRET serves where nobody has changed more than RAX and the way is not stepped.
        "test byte ptr [rsp + {state}], {restore}",
        "jnz {user_exit}",
        "test dword ptr [rsp + {rflags}], {tf}",
        "jnz {user_exit}",
        "mov r11, [rsp + {rflags}]",
        "mov rax, [rsp + {rax}]",
        "jmp 5b",
        user_stack = const area::USER_STACK,
        kernel_stack = const area::KERNEL_STACK,
        return_work = const area::RETURN_WORK,
        user_data = const USER_DATA,
        user_code = const USER_CODE,
        left_out = const LEFT_OUT_BYTES,
        special_from = const SPECIAL_FROM,
        special_more = const SPECIAL_MORE,
        in_frame = const IN_FRAME,
        tf = const TF,
        restore = const RESTORE,
        complete = const COMPLETE,
        state = const UserRegs::STATE,
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
        r15 = const offset_of!(UserRegs, r15),
        r14 = const offset_of!(UserRegs, r14),
        r13 = const offset_of!(UserRegs, r13),
        r12 = const offset_of!(UserRegs, r12),
        rbx = const offset_of!(UserRegs, rbx),
        r11 = const offset_of!(UserRegs, r11),
        rcx = const offset_of!(UserRegs, rcx),
    )
}
