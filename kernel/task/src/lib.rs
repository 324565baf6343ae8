//! Processes and threads: what they own, how they live and end, signals, and tracing.
//!
//! [`processes`] says what a process and a thread are, [`signal`] what tells them something out of
//! turn, [`ptrace`] how one looks into another; the three know each other. Memory (`mm`) and files
//! (`vfs`) stand below and know no threads; what follows threads (`perf`), what they talk through
//! (`ipc`) and what starts programs (`exec`) stand above. The ABI is `kernel/linux`'s.
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
pub mod names;
pub mod namespaces;
pub mod net_namespace;
mod processes;
pub mod ptrace;
pub mod signal;

pub use processes::*;
