//! How a program enters the kernel, and what the kernel must answer.
//!
//! There are three ways in: a system call, an exception, an interrupt. On each the entry
//! code puts the program's registers on the thread's kernel stack as [`UserRegs`] and
//! calls the [`Kernel`]. What the registers hold when the call returns is what the program
//! continues with; the way out makes any value harmless.
//!
//! In kernel mode only two things may trap: an instruction listed in [`arch::fixup`] that
//! touched user memory, and an interrupt while the CPU is halted. Anything else is a bug
//! and panics.

pub use arch::UserRegs;

use base::VirtAddr;
use core::sync::atomic::{AtomicPtr, Ordering};

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
/// thread's kernel stack, and may block.
pub trait Kernel: Sync {
    /// A system call: number in `orig_rax`; the result goes to `rax`.
    fn syscall(&self, regs: &mut UserRegs);
    /// An exception in user mode.
    fn exception(&self, regs: &mut UserRegs, exception: Exception);
    /// After an interrupt that came in user mode was handled: the place to preempt.
    fn interrupted(&self, regs: &mut UserRegs);
}

static KERNEL: AtomicPtr<()> = AtomicPtr::new(core::ptr::null_mut());

/// Makes `kernel` the one that programs enter; once, before the first program runs.
///
/// The calls are dispatched statically: the entry code gets plain functions.
pub fn install<K: Kernel + 'static>(kernel: &'static K) {
    KERNEL.store(
        core::ptr::from_ref(kernel).cast_mut().cast(),
        Ordering::Release,
    );
    arch::trap::set_handlers(&arch::trap::Handlers {
        syscall: syscall::<K>,
        user_trap: user_trap::<K>,
        kernel_trap,
        return_work,
    });
}

/// Before [`install`]: traps in kernel mode are handled, programs do not exist.
pub(crate) fn init() {
    struct Nobody;
    impl Kernel for Nobody {
        fn syscall(&self, _: &mut UserRegs) {}
        fn exception(&self, _: &mut UserRegs, _: Exception) {}
        fn interrupted(&self, _: &mut UserRegs) {}
    }
    install(&Nobody);
}

fn kernel<K: Kernel + 'static>() -> &'static K {
    // SAFETY: `install::<K>` stored a `&'static K` before it installed functions for `K`.
    unsafe { &*KERNEL.load(Ordering::Relaxed).cast() }
}

extern "C" fn syscall<K: Kernel + 'static>(regs: &mut UserRegs) {
    kernel::<K>().syscall(regs);
}

extern "C" fn user_trap<K: Kernel + 'static>(regs: &mut UserRegs, vector: u64, error: u64) {
    let vector = vector as u8;
    if vector < 32 {
        kernel::<K>().exception(regs, Exception::decode(vector, error));
    } else {
        crate::irq::dispatch(vector);
        kernel::<K>().interrupted(regs);
    }
    return_work(regs);
}

/// The long way back to user mode.
extern "C" fn return_work(regs: &mut UserRegs) {
    regs.sanitise();
    crate::task::before_user_mode();
}

const DEBUG: u64 = 1;
const NMI: u64 = 2;
const PAGE_FAULT: u64 = 14;
const GENERAL_PROTECTION: u64 = 13;

extern "C" fn kernel_trap(frame: &mut arch::KernelFrame, vector: u64) {
    match vector {
        32.. => crate::irq::dispatch(vector as u8),
        NMI => crate::panic::stop_if_asked(),
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
    frame.rax = arch::instr::read_cr2();
}

#[cold]
fn unexpected(frame: &arch::KernelFrame, vector: u64) -> ! {
    crate::panic::trap(frame, vector)
}
