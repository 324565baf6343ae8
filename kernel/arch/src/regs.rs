//! Register frames that the entry code builds on the kernel stack.

use core::mem::{offset_of, size_of};

/// Selector of user code, with privilege 3.
pub const USER_CODE: u16 = 0x33;
/// Selector of user data, with privilege 3.
pub const USER_DATA: u16 = 0x2b;

/// Carry, parity, adjust, zero, sign, trap, direction, overflow, NT, RF, AC, ID:
/// the flags that a program may choose.
pub const USER_FLAGS: u64 = 0x0025_4dd5;
/// Flags always set in user mode: IF and the reserved bit 1.
pub const FIXED_FLAGS: u64 = 0x202;

/// A frame in `state`: every field holds the program's register. A system call leaves
/// out those that the kernel's own functions preserve, until the long way back.
pub(crate) const COMPLETE: u64 = 1;
/// In `state`: the way out loads every register.
pub(crate) const RESTORE: u64 = 2;
/// In `state`: the call wants to run again with a complete frame.
const AGAIN: u64 = 4;

/// A program's registers, as they were when it entered the kernel.
///
/// What is in them when the kernel returns is what the program finds. Any value is
/// safe: addresses are made canonical and flags masked on the way out.
///
/// Invariant **Complete**: the fields up to `rcx` are the program's only where
/// [`UserRegs::is_complete`]; that is everywhere but in the handler of a system call.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names are the registers'")]
pub struct UserRegs {
    pub r15: u64,
    pub r14: u64,
    pub r13: u64,
    pub r12: u64,
    pub rbx: u64,
    pub r11: u64,
    pub rcx: u64,
    state: u64,
    pub rbp: u64,
    pub r10: u64,
    pub r9: u64,
    pub r8: u64,
    pub rdx: u64,
    pub rsi: u64,
    pub rdi: u64,
    pub rax: u64,
    /// The system call's number, or -1 if the program did not enter by one.
    pub orig_rax: u64,
    pub rip: u64,
    cs: u64,
    pub rflags: u64,
    pub rsp: u64,
    ss: u64,
}

/// Bytes of [`UserRegs`].
pub const USER_REGS_BYTES: usize = size_of::<UserRegs>();

const _: () = assert!(USER_REGS_BYTES == 22 * 8, "the entry code pushes 22 words");
const _: () = assert!(
    offset_of!(UserRegs, rax) == 15 * 8,
    "the entry code counts on it"
);
const _: () = assert!(
    offset_of!(UserRegs, rip) == 17 * 8,
    "the processor pushes from here"
);

impl UserRegs {
    /// Where `state` lies, for the assembler.
    pub(crate) const STATE: usize = offset_of!(UserRegs, state);

    /// Registers of a program that starts at `rip` with its stack at `rsp`; all others
    /// zero.
    pub const fn new(rip: u64, rsp: u64) -> Self {
        Self {
            r15: 0,
            r14: 0,
            r13: 0,
            r12: 0,
            rbx: 0,
            r11: 0,
            rcx: 0,
            state: COMPLETE | RESTORE,
            rbp: 0,
            r10: 0,
            r9: 0,
            r8: 0,
            rdx: 0,
            rsi: 0,
            rdi: 0,
            rax: 0,
            orig_rax: u64::MAX,
            rip,
            cs: USER_CODE as u64,
            rflags: FIXED_FLAGS,
            rsp,
            ss: USER_DATA as u64,
        }
    }

    /// Makes the long way back restore every register, too.
    ///
    /// The short way back leaves `rbx`, `rbp` and `r12` to `r15` as the program had
    /// them and loses `rcx` and `r11`. Whoever changes one of these, `rip` or `rflags` in
    /// the frame (a signal, `execve`, a debugger) calls this.
    ///
    /// # Panics
    /// If the frame is not complete: there would be nothing to restore.
    pub fn restore_all(&mut self) {
        assert!(self.is_complete(), "the frame lacks registers");
        self.state |= RESTORE;
    }

    /// Whether every field is the program's register.
    pub fn is_complete(&self) -> bool {
        self.state & COMPLETE != 0
    }

    /// Asks to run the system call again with a complete frame, on the way back; it replies
    /// with [`crate::trap::IN_FRAME`] now.
    pub fn run_again(&mut self) {
        self.state |= AGAIN;
    }

    /// Takes note that the call runs again now; false if nobody asked for it.
    pub fn take_again(&mut self) -> bool {
        let asked = self.state & AGAIN != 0;
        self.state &= !AGAIN;
        asked
    }

    /// Makes the frame one that the processor accepts, whatever was written to it.
    ///
    /// An address outside the lower half becomes one in the kernel's half, where the
    /// program faults on its first instruction, in user mode.
    pub fn sanitise(&mut self) {
        if self.rip >> crate::layout::USER_BITS != 0 {
            self.rip |= !0 << crate::layout::USER_BITS;
        }
        self.rflags = self.rflags & USER_FLAGS | FIXED_FLAGS;
        self.cs = u64::from(USER_CODE);
        self.ss = u64::from(USER_DATA);
    }
}

/// What a trap in kernel mode leaves on the stack.
#[repr(C)]
#[derive(Debug)]
#[allow(missing_docs, reason = "the names are the registers'")]
pub struct KernelFrame {
    pub r15: u64,
    pub r14: u64,
    pub r13: u64,
    pub r12: u64,
    pub rbx: u64,
    pub r11: u64,
    pub rcx: u64,
    unused: u64,
    pub rbp: u64,
    pub r10: u64,
    pub r9: u64,
    pub r8: u64,
    pub rdx: u64,
    pub rsi: u64,
    pub rdi: u64,
    pub rax: u64,
    pub error: u64,
    pub rip: u64,
    pub cs: u64,
    pub rflags: u64,
    pub rsp: u64,
    pub ss: u64,
}

const _: () = assert!(
    size_of::<KernelFrame>() == USER_REGS_BYTES,
    "one frame, two views"
);
