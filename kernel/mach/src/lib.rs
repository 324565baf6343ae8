//! The safe machine: CPUs, time, interrupts, traps, contexts, memory.
//!
//! `arch` says what the processor does; this crate makes it something that safe code
//! can use without being able to break Rust's rules. The kernel proper knows only this
//! crate.
//!
//! How the machine is run, which every module here relies on:
//! - **Closed**: the kernel runs with interrupts off. They are open only in user mode and
//!   inside [`idle::wait_for_interrupt`], [`cpu::take_interrupts`] and a nap in a wait for a lock, where only two
//!   handlers can run, which take none ([`time`]). So a handler never interrupts a holder of a lock that it wants.
//! - **One flow per CPU**: the kernel is not preempted. A thread leaves its CPU only by
//!   [`task::Context::switch`], and no spin lock is held then.
//! - **Relax**: whoever spins calls [`cpu::relax`], which serves what other CPUs ask of
//!   this one; so two CPUs never wait for each other with interrupts off.
//!
//! Boot order (`setup`): descriptor tables, [`boot::info`], memory, interrupt
//! controllers, clock; then the image's `kernel_main`.
//!
//! The modules are layered, each above those that it uses:
//!
//! ```text
//! setup
//! trap  profile  panic
//! idle  task  pci_ports  random  console  host  power
//! time  irq
//! vdso
//! mem
//! numa  topology
//! acpi  speculation
//! boot
//! log
//! sync and cpu, vector
//! ```
//!
//! Where a lower one needs a higher one, `setup` or the kernel hands it a function.
#![no_std]

extern crate alloc;

pub mod acpi;
pub mod boot;
pub mod console;
pub mod cpu;
pub mod host;
pub mod idle;
pub mod irq;
pub mod log;
pub mod mem;
pub mod numa;
pub mod panic;
pub mod pci_ports;
pub mod power;
pub mod profile;
pub mod random;
pub mod setup;
pub mod speculation;
pub mod sync;
pub mod task;
pub mod time;
mod topology;
pub mod trap;
pub mod vdso;
mod vector;
