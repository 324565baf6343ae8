//! The Linux system-call ABI: decode, call the kernel, encode.
//!
//! One file per family of calls. Each has a table `CALLS` that says number, name, kinds of
//! arguments (for `--strace`) and handler; `table` merges them at compile time. A handler
//! decodes and checks every argument, then calls `kernel`, then encodes the result. It
//! holds no state of its own and no policy.
//!
//! errno exists only here (`errno`). Whatever a program passes, nothing here may panic:
//! no indexing, no unwrap, no arithmetic that overflows; `host/tidy` checks it.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod adjtime;
mod advice;
mod async_io;
mod attributes;
mod call;
mod clone;
mod credentials;
mod deadline;
mod death;
mod descriptor;
mod dir;
mod dispatch;
mod epoll;
mod errno;
mod event;
mod exec;
mod fatal;
mod fcntl;
mod futex;
mod init;
mod inotify;
mod ioctl;
mod ioprio;
mod iovec;
mod kcmp;
mod leave;
mod lock;
mod measured;
mod membarrier;
mod memory;
mod mempolicy;
mod missing;
mod mount;
mod mqueue;
mod namespace;
mod open;
mod page_nodes;
mod path;
mod perf;
mod pidfd;
mod pipe;
mod policy;
mod poll;
mod prctl;
mod process;
mod ptrace;
mod random;
mod read_write;
mod reboot;
mod remote;
mod restart;
mod rlimit;
mod rseq;
mod sched;
mod seccomp;
mod select;
mod sendfile;
mod shortage;
mod sigframe;
mod siginfo;
mod sigmask;
mod signal;
mod signalfd;
mod socket;
mod splice;
mod stat;
mod strace;
mod sync;
mod sysinfo;
mod sysv;
mod table;
mod time;
mod timer;
mod timerfd;
mod timespec;
mod trap;
mod wait;
mod xattr;

pub use call::{Arg, Call, Entry, Outcome};
pub use errno::Errno;
pub use init::{First, Volume, start_init};
pub use trap::init;
