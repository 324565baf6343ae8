//! x86-64 as it is: entry points, descriptor tables, context switch, APIC.
//!
//! Everything here is the thinnest wrapper that can be named, mostly `unsafe fn` whose
//! contract is the processor manual's. Policy and safety live in `mach`, the only
//! crate that calls this one.
//!
//! Invariants that the whole crate rests on:
//! - **GS**: while the kernel runs, `GS.base` points to this CPU's [`CpuArea`]; while a
//!   program runs, `KERNEL_GS_BASE` does. Only the entry code in this crate swaps them.
//! - **Stack**: `CpuArea::kernel_stack` and `TSS.rsp0` are the top of the running
//!   thread's kernel stack, and [`UserRegs`] of a program lies right below it.
//! - **IF**: the kernel runs with interrupts off; only [`instr::enable_and_halt`] and
//!   the return to user mode open them.
#![no_std]

pub mod apic;
pub mod area;
#[cfg(target_os = "none")]
pub mod boot;
pub mod caching;
pub mod cpuid;
pub mod crc32c;
pub mod fixup;
pub mod fpu;
pub mod instr;
pub mod ioapic;
pub mod layout;
pub mod msr;
pub mod regs;
#[cfg(target_os = "none")]
pub mod speculation;
pub mod switch;
#[cfg(target_os = "none")]
pub mod syscall;
pub mod tables;
#[cfg(target_os = "none")]
pub mod trap;
pub mod uart;

pub use area::CpuArea;
pub use regs::{KernelFrame, UserRegs};
