//! The kernel: tasks, signals, and what follows programs.
//!
//! It names, protects and places; `kernel/linux` above it speaks the ABI, `mach` below
//! it speaks the machine. Everything here is safe Rust.
//!
//! How it runs: the kernel executes with interrupts off and is never preempted. A thread
//! gives up its CPU only where it blocks (`sched::park`), yields, or returns to user
//! mode; user code and the idle loop run with interrupts on. Hence no lock needs to
//! disable interrupts, and per-CPU data needs no lock at all.
//!
//! Lock order: sleeping locks (`sync::Mutex`) before spin locks (`mach::sync::Spin`);
//! no thread blocks with a spin lock held. Among the sleeping locks: an address space (`mm`),
//! then a directory, then an inode, then a pipe or socket.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod bpf_program;
pub mod clock;
pub mod dev;
pub mod names;
pub mod namespaces;
pub mod net_namespace;
pub mod ptrace;
pub mod random;
pub mod signal;
pub mod task;

/// The release of Linux that programs see: features up to this one may be expected.
pub const RELEASE: &str = "6.12.0-sietch";
