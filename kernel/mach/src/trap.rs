//! How a program enters the kernel, and what the kernel must answer.
//!
//! There are three ways in: a system call, an exception, an interrupt. On each the entry
//! code puts the program's registers on the thread's kernel stack as [`UserRegs`] and
//! calls the [`Kernel`], or the function for system calls that was given beside it. What the registers hold when it returns is what the program
//! continues with; the way out makes any value harmless.
//!
//! In kernel mode only two things may trap: an instruction listed in [`arch::fixup`] that
//! touched user memory, and an interrupt while the CPU is halted. Anything else is a bug
//! and panics.

pub use arch::UserRegs;
pub use arch::trap::{IN_FRAME, Reply};

use base::VirtAddr;
use core::mem::MaybeUninit;

/// Why the processor could not go on with a program.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Exception {
    /// A page was missing or did not permit the access.
    PageFault {
        /// What was accessed.
        addr: VirtAddr,
        /// It was a store.
        write: bool,
        /// It was an instruction fetch.
        exec: bool,
        /// A page was there but did not permit it.
        present: bool,
    },
    /// Division by zero, or a quotient too large.
    DivideError,
    /// Single step or a hardware breakpoint.
    Debug,
    /// `int3`.
    Breakpoint,
    /// `into`.
    Overflow,
    /// `bound`.
    BoundRange,
    /// An instruction that does not exist, or not for programs.
    InvalidOpcode,
    /// A segment that is not there.
    SegmentNotPresent {
        /// The selector.
        code: u32,
    },
    /// A bad stack segment or a non-canonical stack address.
    StackFault {
        /// The selector, or 0.
        code: u32,
    },
    /// Everything else that is forbidden.
    GeneralProtection {
        /// The selector, or 0.
        code: u32,
    },
    /// Misaligned access with alignment checks on.
    AlignmentCheck,
    /// An x87 exception.
    FloatingPoint,
    /// An SSE or AVX exception.
    Simd,
    /// Any other vector.
    Other {
        /// The vector's number.
        vector: u8,
    },
}

impl Exception {
    fn decode(vector: u8, error: u64) -> Self {
        let code = error as u32;
        match vector {
            0 => Self::DivideError,
            1 => Self::Debug,
            3 => Self::Breakpoint,
            4 => Self::Overflow,
            5 => Self::BoundRange,
            6 => Self::InvalidOpcode,
            11 => Self::SegmentNotPresent { code },
            12 => Self::StackFault { code },
            13 => Self::GeneralProtection { code },
            14 => Self::PageFault {
                addr: VirtAddr(arch::instr::read_cr2()),
                present: code & 1 != 0,
                write: code & 2 != 0,
                exec: code & 16 != 0,
            },
            16 => Self::FloatingPoint,
            17 => Self::AlignmentCheck,
            19 => Self::Simd,
            vector => Self::Other { vector },
        }
    }
}

/// What the kernel does when a program enters it. All run with interrupts closed, on the
/// thread's kernel stack, and may block. There is one kernel, so nothing is passed but the
/// registers, and the calls are dispatched statically.
pub trait Kernel {
    /// An exception in user mode.
    fn exception(regs: &mut UserRegs, exception: Exception);
    /// An interrupt came in user mode and was handled.
    fn interrupted(regs: &mut UserRegs);
    /// Before the program goes on, unless nobody asked for it since the last time
    /// ([`crate::task::look_before_user`]): the place for signals and preemption.
    fn leave(regs: &mut UserRegs);
}

/// Answers a system call: number in `orig_rax`. The registers may be incomplete
/// ([`UserRegs::is_complete`]). The entry code calls it without a detour.
pub type Syscall = extern "C" fn(&mut UserRegs) -> Reply;

/// Makes `K` the one that programs enter, by calls through `syscall`; once, before the first
/// program runs.
pub fn install<K: Kernel>(syscall: Syscall) {
    arch::trap::set_handlers(&arch::trap::Handlers {
        syscall,
        user_trap: user_trap::<K>,
        kernel_trap,
        return_work: return_work::<K>,
    });
}

/// Before [`install`]: traps in kernel mode are handled, programs do not exist.
pub(crate) fn init() {
    struct Nobody;
    impl Kernel for Nobody {
        fn exception(_: &mut UserRegs, _: Exception) {}
        fn interrupted(_: &mut UserRegs) {}
        fn leave(_: &mut UserRegs) {}
    }
    extern "C" fn no_call(_: &mut UserRegs) -> Reply {
        Reply {
            unused: MaybeUninit::uninit(),
            value: u64::MAX,
        }
    }
    install::<Nobody>(no_call);
}

extern "C" fn user_trap<K: Kernel>(regs: &mut UserRegs, vector: u64, error: u64) {
    let vector = vector as u8;
    if vector < 32 {
        K::exception(regs, Exception::decode(vector, error));
    } else {
        crate::irq::dispatch(vector);
        K::interrupted(regs);
    }
    return_work::<K>(regs);
}

/// The long way back to user mode.
extern "C" fn return_work<K: Kernel>(regs: &mut UserRegs) {
    K::leave(regs);
    regs.sanitise();
    crate::task::before_user_mode();
}

const DEBUG: u64 = 1;
const NMI: u64 = 2;
const PAGE_FAULT: u64 = 14;
const GENERAL_PROTECTION: u64 = 13;
/// The address of a fault that has none; no program has memory there.
const NO_ADDRESS: u64 = u64::MAX;

extern "C" fn kernel_trap(frame: &mut arch::KernelFrame, vector: u64) {
    match vector {
        32.. => crate::irq::dispatch(vector as u8),
        NMI => {
            crate::power::stop_if_asked();
            crate::profile::on_nmi(frame);
        }
        // Left over from a program that single-steps into the kernel.
        DEBUG => {}
        PAGE_FAULT | GENERAL_PROTECTION => fix_up(frame, vector),
        _ => unexpected(frame, vector),
    }
}

fn fix_up(frame: &mut arch::KernelFrame, vector: u64) {
    let Some(landing) = arch::fixup::landing(frame.rip) else {
        unexpected(frame, vector)
    };
    frame.rip = landing;
    frame.rax = match vector {
        PAGE_FAULT => arch::instr::read_cr2(),
        _ => NO_ADDRESS,
    };
}

#[cold]
fn unexpected(frame: &arch::KernelFrame, vector: u64) -> ! {
    crate::panic::trap(frame, vector)
}
