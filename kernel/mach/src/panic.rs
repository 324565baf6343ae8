//! The end: a broken invariant of the kernel.
//!
//! The CPU that panics first stops the others by NMI, writes the message and the return
//! addresses on its stack to the log, and turns the machine off. It takes no lock, because
//! the holder may be stopped or itself.

use core::panic::PanicInfo;

use crate::log::last_line;
use crate::mem::stack;
use crate::power;

const FRAMES_MAX: usize = 64;

/// What the image's panic handler does.
pub fn panic(info: &PanicInfo<'_>) -> ! {
    power::stop_others();
    match info.location() {
        Some(at) => last_line(format_args!("panic {} at {at}", info.message())),
        None => last_line(format_args!("panic {}", info.message())),
    }
    walk(arch::instr::frame_pointer());
    power::cut()
}

/// A trap in kernel mode that nobody expected.
pub(crate) fn trap(frame: &arch::KernelFrame, vector: u64) -> ! {
    power::stop_others();
    last_line(format_args!(
        "panic {} in the kernel at {:#x}, address {:#x}, error {:#x}, stack {:#x}",
        name(vector),
        frame.rip,
        arch::instr::read_cr2(),
        frame.error,
        frame.rsp,
    ));
    last_line(format_args!(
        "registers rax={:#x} rbx={:#x} rcx={:#x} rdx={:#x} rsi={:#x} rdi={:#x} r8={:#x} r9={:#x}",
        frame.rax, frame.rbx, frame.rcx, frame.rdx, frame.rsi, frame.rdi, frame.r8, frame.r9,
    ));
    last_line(format_args!("frame {:#x}", frame.rip));
    walk(frame.rbp);
    power::cut()
}

/// What a vector means when it comes in kernel mode.
fn name(vector: u64) -> &'static str {
    match vector {
        0 => "division by zero",
        6 => "invalid opcode",
        8 if stack::is_below(arch::instr::read_cr2()) => "kernel stack overflow",
        8 => "double fault",
        13 => "general protection fault",
        14 => "page fault",
        18 => "machine check",
        _ => "unexpected exception",
    }
}

/// Writes the return addresses of a chain of frame pointers, oldest last.
fn walk(mut frame: u64) {
    for _ in 0..FRAMES_MAX {
        let in_kernel = frame >= arch::layout::DIRECT_MAP && frame.is_multiple_of(8);
        if !in_kernel {
            return;
        }
        // SAFETY: frame pointers of the kernel point into its stacks, which are mapped; a
        // wild one faults, and that second panic ends the machine at once.
        let [next, return_to] = unsafe { *(frame as *const [u64; 2]) };
        if return_to < arch::layout::IMAGE_OFFSET {
            return;
        }
        last_line(format_args!("frame {return_to:#x}"));
        if next <= frame {
            return;
        }
        frame = next;
    }
}
