//! Linux' system calls: decode, call the kernel, encode.
//!
//! One file per family of calls. Each has a table `CALLS` that says number, name, kinds of
//! arguments (for `--strace`) and handler; `table` merges them at compile time. A handler
//! decodes and checks every argument, then calls `kernel`, then encodes the result. It
//! holds no state of its own and no policy.
//!
//! What the families share, errno with it, is in `linux_abi`. Whatever a program passes, nothing here may panic:
//! no indexing, no unwrap, no arithmetic that overflows; `host/tidy` checks it.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod clone;
mod credentials;
mod death;
mod dispatch;
mod exec;
mod fatal;
mod init;
mod ioctl;
mod ioprio;
mod kcmp;
mod leave;
mod measured;
mod namespace;
mod perf;
mod pidfd;
mod policy;
mod prctl;
mod process;
mod ptrace;
mod random;
mod reboot;
mod rlimit;
mod rseq;
mod sched;
mod seccomp;
mod shortage;
mod sigframe;
mod siginfo;
mod signal;
mod signalfd;
mod strace;
mod sysinfo;
mod table;
mod trap;
mod wait;

pub use init::{First, Volume, start_init};
pub use trap::init;
