//! Linux's calls on processes, threads and signals, and the way back to a program.
//!
//! `leave` is that way: what is due before a program runs on, signals and stops among it, which
//! `sigframe` and `seccomp` serve. It ends threads for `process` and `seccomp`, and new threads
//! (`clone`) begin with it.
//!
//! Not here: the way in, and the table of calls (`linux`).
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod clone;
mod credentials;
pub mod exec;
pub mod fatal;
mod ioprio;
mod kcmp;
mod keyring;
pub mod leave;
mod namespace;
mod perf;
mod pidfd;
mod policy;
mod prctl;
mod process;
mod ptrace;
mod rlimit;
mod rseq;
mod sched;
pub mod seccomp;
mod sigframe;
mod siginfo;
mod signal;
mod signalfd;
pub mod start;
mod wait;

use linux_abi::Entry;

/// The calls of this crate.
pub const FAMILIES: &[&[Entry]] = &[
    clone::CALLS,
    credentials::CALLS,
    exec::CALLS,
    ioprio::CALLS,
    kcmp::CALLS,
    keyring::CALLS,
    namespace::CALLS,
    perf::CALLS,
    pidfd::CALLS,
    policy::CALLS,
    prctl::CALLS,
    process::CALLS,
    ptrace::CALLS,
    rlimit::CALLS,
    rseq::CALLS,
    sched::CALLS,
    seccomp::CALLS,
    signal::CALLS,
    signalfd::CALLS,
    wait::CALLS,
];
