//! Exceptions and interrupts: the stubs behind the IDT, and the way back to user mode.
//!
//! Every stub builds the frame of [`crate::regs`] and calls the handler for the mode that
//! was interrupted. A program enters with its own GS, which is swapped; `lfence` keeps the
//! processor from running ahead with the wrong one (Spectre variant 1 on SWAPGS).
//!
//! Debug exceptions, NMIs, double faults and machine checks may come between the first
//! instructions of the system-call entry, when stack and GS are still the program's. They
//! have stacks of their own, and above each such stack lies the address of the CPU's area,
//! so that their stub can set GS without asking which mode was interrupted. A debug
//! exception from user mode is an ordinary one and moves to the thread's stack.

use core::arch::{global_asm, naked_asm};
use core::mem::{MaybeUninit, offset_of};
use core::sync::atomic::{AtomicUsize, Ordering};

use crate::regs::{COMPLETE, KernelFrame, RESTORE, USER_REGS_BYTES, UserRegs};
use crate::{area, msr};

/// What the entry code calls.
pub struct Handlers {
    /// A system call.
    pub syscall: extern "C" fn(&mut UserRegs) -> Reply,
    /// A trap in user mode: registers, vector, error code.
    pub user_trap: extern "C" fn(&mut UserRegs, u64, u64),
    /// A trap in kernel mode: frame and vector.
    pub kernel_trap: extern "C" fn(&mut KernelFrame, u64),
    /// The long way back from a system call; leaves the registers sanitised.
    pub return_work: extern "C" fn(&mut UserRegs),
}

/// The reply of a call whose answer is in the frame, with as many registers as it likes.
pub const IN_FRAME: i32 = -513;

/// What a system call answers, in RAX and RDX: a handler's `Result` as it is.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Reply {
    /// Whether it failed; nobody asks.
    pub unused: MaybeUninit<u64>,
    /// What goes to the program's RAX.
    pub value: u64,
}

/// Who takes system calls: assembler calls it by this word, before there is any object.
pub(crate) static SYSCALL: AtomicUsize = AtomicUsize::new(0);
/// Who takes traps of programs, likewise.
pub(crate) static USER_TRAP: AtomicUsize = AtomicUsize::new(0);
/// Who takes the kernel's own.
pub(crate) static KERNEL_TRAP: AtomicUsize = AtomicUsize::new(0);
/// Who looks for work before a program goes on.
pub(crate) static RETURN_WORK: AtomicUsize = AtomicUsize::new(0);

/// Installs the handlers for all CPUs.
pub fn set_handlers(handlers: &Handlers) {
    SYSCALL.store(handlers.syscall as usize, Ordering::Release);
    USER_TRAP.store(handlers.user_trap as usize, Ordering::Release);
    KERNEL_TRAP.store(handlers.kernel_trap as usize, Ordering::Release);
    RETURN_WORK.store(handlers.return_work as usize, Ordering::Release);
}

/// Bytes between the stubs of two vectors.
pub(crate) const STUB_BYTES: usize = 16;

unsafe extern "C" {
    /// The stub of vector 0; the others follow, [`STUB_BYTES`] apart.
    pub(crate) fn trap_stubs();
}

global_asm!(
    ".balign 16",
    ".global trap_stubs",
    "trap_stubs:",
    ".set vector, 0",
    ".rept 256",
    ".balign {stub_bytes}",
    // The vectors with an error code (SDM volume 3, table 6-1); others push a zero.
    ".if vector == 8 || (vector >= 10 && vector <= 14) || vector == 17 || vector == 21",
    ".else",
    "push 0",
    ".endif",
    "push rax",
    "mov eax, vector",
    ".if vector == 1",
    "jmp {debug}",
    ".elseif vector == 2 || vector == 8 || vector == 18",
    "jmp {own_stack}",
    ".else",
    "jmp {common}",
    ".endif",
    ".set vector, vector + 1",
    ".endr",
    stub_bytes = const STUB_BYTES,
    debug = sym debug,
    own_stack = sym own_stack,
    common = sym common,
);

/// Completes a frame below `rax`.
macro_rules! push_rest {
    () => {
        concat!(
            "push rdi; push rsi; push rdx; push r8; push r9; push r10; push rbp; push {state};",
            "push rcx; push r11; push rbx; push r12; push r13; push r14; push r15",
        )
    };
}

/// Takes a frame down to the part that IRETQ takes.
macro_rules! pop_all {
    () => {
        concat!(
            "pop r15; pop r14; pop r13; pop r12; pop rbx; pop r11; pop rcx; add rsp, 8; pop rbp;",
            "pop r10; pop r9; pop r8; pop rdx; pop rsi; pop rdi; pop rax; add rsp, 8",
        )
    };
}

/// Entered with error code and `rax` pushed and the vector in `eax`.
#[unsafe(naked)]
unsafe extern "C" fn common() {
    naked_asm!(
        push_rest!(),
        "cld",
        "7: .byte 0x0f, 0x1f, 0x00",
        ".pushsection .smap_clac, \"a\"",
        ".quad 7b",
        ".popsection",
        "mov esi, eax",
        "test byte ptr [rsp + {cs}], 3",
        "jz 2f",
        "swapgs",
        "jmp {from_user}",
        "2:",
        "lfence",
        "mov rdi, rsp",
        "call qword ptr [rip + {kernel_trap}]",
        pop_all!(),
        "iretq",
        state = const COMPLETE | RESTORE,
        cs = const offset_of!(KernelFrame, cs),
        kernel_trap = sym KERNEL_TRAP,
        from_user = sym from_user,
    )
}

/// Entered with the frame complete, the vector in `esi` and GS swapped.
#[unsafe(naked)]
unsafe extern "C" fn from_user() {
    naked_asm!(
        "lfence",
        "mov rdx, [rsp + {error}]",
        "mov qword ptr [rsp + {error}], -1",
        "mov rdi, rsp",
        "call qword ptr [rip + {user_trap}]",
        "jmp {user_exit}",
        error = const offset_of!(UserRegs, orig_rax),
        user_trap = sym USER_TRAP,
        user_exit = sym user_exit,
    )
}

/// Back to user mode with every register; the frame is at the stack pointer.
#[unsafe(naked)]
pub(crate) unsafe extern "C" fn user_exit() {
    naked_asm!(
        pop_all!(),
        // `speculation` may put a jump here.
        "7: swapgs",
        "iretq",
        ".pushsection .verw_iret, \"a\"",
        ".quad 7b",
        ".popsection",
    )
}

/// A debug exception, on its own stack.
#[unsafe(naked)]
unsafe extern "C" fn debug() {
    naked_asm!(
        "test byte ptr [rsp + 24], 3",
        "jz {own_stack}",
        "swapgs",
        "mov rax, rsp",
        "mov rsp, gs:[{kernel_stack}]",
        "push qword ptr [rax + 48]",
        "push qword ptr [rax + 40]",
        "push qword ptr [rax + 32]",
        "push qword ptr [rax + 24]",
        "push qword ptr [rax + 16]",
        "push qword ptr [rax + 8]",
        "push qword ptr [rax]",
        push_rest!(),
        "cld",
        "7: .byte 0x0f, 0x1f, 0x00",
        ".pushsection .smap_clac, \"a\"",
        ".quad 7b",
        ".popsection",
        "mov esi, 1",
        "jmp {from_user}",
        state = const COMPLETE | RESTORE,
        kernel_stack = const area::KERNEL_STACK,
        own_stack = sym own_stack,
        from_user = sym from_user,
    )
}

/// An exception that may have interrupted the entry code itself, on its own stack.
#[unsafe(naked)]
unsafe extern "C" fn own_stack() {
    naked_asm!(
        push_rest!(),
        "cld",
        "mov r14d, eax",
        "mov ecx, {gs_base}",
        "rdmsr",
        "mov r12d, eax",
        "mov r13d, edx",
        "mov rax, [rsp + {area}]",
        "mov rdx, rax",
        "shr rdx, 32",
        "wrmsr",
        "mov esi, r14d",
        "mov rdi, rsp",
        "call qword ptr [rip + {kernel_trap}]",
        "mov ecx, {gs_base}",
        "mov eax, r12d",
        "mov edx, r13d",
        "wrmsr",
        pop_all!(),
        "iretq",
        state = const COMPLETE | RESTORE,
        gs_base = const msr::GS_BASE,
        area = const USER_REGS_BYTES,
        kernel_trap = sym KERNEL_TRAP,
    )
}

/// Leaves the kernel with `regs`, dropping what is on the thread's kernel stack.
///
/// # Safety
/// The registers are sanitised, and `CpuArea::kernel_stack` is the stack of this thread.
pub unsafe fn enter_user(regs: &UserRegs) -> ! {
    let frame = (area::this().kernel_stack.get() as *mut UserRegs).wrapping_sub(1);
    // SAFETY: the place below the top of the stack is the frame's (invariant **Stack**);
    // what the copy overwrites is never returned to.
    unsafe {
        core::arch::asm!(
            "mov rsp, rdi",
            "cld",
            "rep movsq",
            "jmp {user_exit}",
            in("rdi") frame,
            in("rsi") regs,
            in("rcx") USER_REGS_BYTES / 8,
            user_exit = sym user_exit,
            options(noreturn),
        )
    }
}
