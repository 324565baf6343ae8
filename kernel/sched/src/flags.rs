//! Reasons to stop a thread on its way back to user mode.

use bitflags::bitflags;

bitflags! {
    /// Reasons to stop on the way back to user mode; zero in the common case.
    ///
    /// A CPU looks at them only if [`mach::task::look_before_user`] was called on it since
    /// it was last in user mode. So whoever adds one calls that or interrupts the CPU, and a
    /// thread that comes to a CPU looks itself.
    ///
    /// The scheduler knows the first of them and that some end a wait; the others mean something
    /// only to whoever sets them.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub struct Flags: u32 {
        /// Another thread should run first.
        const RESCHEDULE = 1;
        /// A signal that is not blocked is pending.
        const SIGNAL = 2;
        /// The whole process is ending; the thread must end too.
        const EXIT = 4;
        /// Calls are reported (`--strace`).
        const TRACE = 8;
        /// The process is stopped; the thread waits for SIGCONT.
        const STOP = 16;
        /// The call exchanged the signal mask; the former one is to be restored.
        const MASK = 32;
        /// The call is restarted by the kernel and keeps its deadline.
        const RESTARTED = 64;
        /// The thread left its CPU since it was in user mode; its rseq area must know.
        const RSEQ = 128;
        /// The profiler wants to know which files are mapped.
        const PROFILE = 256;
        /// Its tracer wants it to stop.
        const PTRACE_TRAP = 512;
        /// It stops before and after each system call, for its tracer.
        const CALL_STOPS = 1024;
        /// It runs one instruction, for its tracer.
        const STEP = 2048;
        /// It may not make every system call (seccomp(2)).
        const SECCOMP = 4096;
        /// Its CPU has samples for performance events.
        const SAMPLES = 8192;
        /// Requests of its rings can go on (io_uring).
        const RING_WORK = 16384;
        /// What it does is only tried: a wait that a signal could end fails at once instead.
        const NO_WAIT = 32768;
    }
}

impl Flags {
    /// Those that end a wait which signals may interrupt.
    pub const ENDS_WAIT: Self = Self::SIGNAL
        .union(Self::EXIT)
        .union(Self::STOP)
        .union(Self::PTRACE_TRAP)
        .union(Self::RING_WORK);
}
