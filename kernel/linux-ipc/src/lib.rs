//! Linux's calls with which processes talk to and wait for each other: pipes, eventfd, futexes,
//! POSIX message queues, and System V's semaphores, messages and shared memory.
//!
//! Not here: sockets (`linux_net`), signals (`linux_task`).
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod event;
mod futex;
mod mqueue;
mod pipe;
mod sysv;

use linux_abi::Entry;

/// The calls of this crate.
pub const FAMILIES: &[&[Entry]] = &[
    event::CALLS,
    futex::CALLS,
    mqueue::CALLS,
    pipe::CALLS,
    sysv::message::CALLS,
    sysv::semaphore::CALLS,
    sysv::shared::CALLS,
];
