//! What comes with a signal: who sent it, and why.

use super::Signal;
use crate::processes::CpuTime;

/// Codes of signals that programs and the kernel send (Linux's `si_code`).
pub mod code {
    /// kill(2).
    pub const USER: i32 = 0;
    /// The kernel itself.
    pub const KERNEL: i32 = 0x80;
    /// sigqueue(3).
    pub const QUEUE: i32 = -1;
    /// A POSIX timer.
    pub const TIMER: i32 = -2;
    /// A message came into an empty queue (mq_notify(3)).
    pub const MESSAGE: i32 = -3;
    /// tkill(2) and tgkill(2).
    pub const TKILL: i32 = -6;
    /// A file became ready; for signals whose own codes mean something else.
    pub const SIGIO: i32 = -5;
    /// SIGIO: there is something to read.
    pub const POLL_IN: i32 = 1;
    /// SIGIO: writing would not block.
    pub const POLL_OUT: i32 = 2;
    /// SIGIO: an error is pending.
    pub const POLL_ERR: i32 = 4;
    /// SIGIO: urgent data.
    pub const POLL_PRI: i32 = 5;
    /// SIGIO: the other side hung up.
    pub const POLL_HUP: i32 = 6;
    /// SIGCHLD: the child exited.
    pub const CHILD_EXITED: i32 = 1;
    /// SIGCHLD: a signal ended the child.
    pub const CHILD_KILLED: i32 = 2;
    /// SIGCHLD: the same, with a core file in principle.
    pub const CHILD_DUMPED: i32 = 3;
    /// SIGCHLD: the tracee stopped for its tracer.
    pub const CHILD_TRAPPED: i32 = 4;
    /// SIGCHLD: the child stopped.
    pub const CHILD_STOPPED: i32 = 5;
    /// SIGCHLD: the child goes on.
    pub const CHILD_CONTINUED: i32 = 6;
    /// SIGSEGV: nothing is mapped.
    pub const SEGV_MAPERR: i32 = 1;
    /// SIGSEGV: the mapping forbids it.
    pub const SEGV_ACCERR: i32 = 2;
    /// SIGBUS: bad alignment.
    pub const BUS_ADRALN: i32 = 1;
    /// SIGBUS: nothing is behind the address.
    pub const BUS_ADRERR: i32 = 2;
    /// SIGFPE: integer division by zero.
    pub const FPE_INTDIV: i32 = 1;
    /// SIGFPE: floating-point division by zero.
    pub const FPE_FLTDIV: i32 = 3;
    /// SIGFPE: overflow.
    pub const FPE_FLTOVF: i32 = 4;
    /// SIGFPE: underflow.
    pub const FPE_FLTUND: i32 = 5;
    /// SIGFPE: inexact result.
    pub const FPE_FLTRES: i32 = 6;
    /// SIGFPE: invalid operation.
    pub const FPE_FLTINV: i32 = 7;
    /// SIGILL: an operand or opcode that does not exist.
    pub const ILL_ILLOPN: i32 = 2;
    /// SIGSYS: a filter over system calls.
    pub const SYS_SECCOMP: i32 = 1;
    /// SIGTRAP: a breakpoint.
    pub const TRAP_BRKPT: i32 = 1;
    /// SIGTRAP: a single step.
    pub const TRAP_TRACE: i32 = 2;
}

/// A signal on its way (Linux's `siginfo_t`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Info {
    /// Which signal.
    pub signal: Signal,
    /// Why; see [`code`].
    pub code: i32,
    /// Who or what caused it.
    pub origin: Origin,
}

/// Where a signal comes from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Origin {
    /// The kernel, with nothing to add.
    Kernel,
    /// A process.
    Process {
        /// Its number.
        pid: u32,
        /// Its real user.
        uid: u32,
    },
    /// A process, with a value for the handler.
    Value {
        /// Its number.
        pid: u32,
        /// Its real user.
        uid: u32,
        /// The value.
        value: u64,
    },
    /// A POSIX timer.
    Timer {
        /// Its number.
        id: u32,
        /// Expirations beyond the first.
        overrun: u32,
        /// The value given at its creation.
        value: u64,
    },
    /// A child whose state changed.
    Child {
        /// Its number.
        pid: u32,
        /// Its real user.
        uid: u32,
        /// Exit status or signal number.
        status: u32,
        /// CPU time it used.
        used: CpuTime,
    },
    /// The thread's own instruction.
    Fault {
        /// The address it used, or its own.
        address: u64,
        /// The processor's exception number.
        vector: u32,
        /// The processor's error code.
        error: u32,
    },
    /// A system call that the thread may not make.
    Call {
        /// The address behind its instruction.
        address: u64,
        /// Its number.
        number: u32,
        /// Who calls so (`AUDIT_ARCH_*`).
        architecture: u32,
        /// What the filter says of it.
        reason: u16,
    },
    /// An open file that became ready.
    File {
        /// The descriptor.
        fd: u32,
        /// Its events, as poll(2) has them.
        band: u32,
    },
}

impl Info {
    /// From the kernel, with nothing to add.
    pub fn kernel(signal: Signal) -> Self {
        Self {
            signal,
            code: code::KERNEL,
            origin: Origin::Kernel,
        }
    }
}
