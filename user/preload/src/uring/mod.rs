//! io_uring: rings that programs enter with sockets of ours.
//!
//! # Problem
//! A ring is memory that a program shares with the kernel, and a number. The kernel cannot serve sockets of ours, and we cannot
//! stand in front of memory. Some programs enter a ring by the C library's `syscall`, some by liburing, and some by
//! instructions of their own, which we do not see; which of these it is shows only when a ring is entered.
//!
//! # Idea
//! A ring is the kernel's, untouched, until it is entered through us with an entry for a socket of ours. It becomes
//! *ours* then: its pages are exchanged for pages of the library's under the same addresses (`taking`), and
//! [`posix::uring::Ring`] serves them by the stack. The kernel's ring stays behind it under the same number, for entries of files
//! (`kernels`).
//! A program whose entries are all for files, or that enters by instructions of its own, keeps the kernel's ring and
//! pays nothing.
//!
//! Who enters does the work, and waits as an epoll set's waiter does (`waiting`): a ring has a set
//! ([`posix::WatchSet`]) of the sockets that its requests wait for. While nobody enters, `keeping` looks.
//!
//! | module | what |
//! |---|---|
//! | `syscalls` | `syscall` and `mmap` in front of those of the C library |
//! | `liburing` | liburing's functions that enter the kernel, and its memory of a ring |
//! | `table` | the rings of the program |
//! | `taking` | a ring becomes ours |
//! | `entering`, `waiting`, `keeping` | the work |
//! | `polling` | numbers of rings in epoll sets and poll |
//! | `registering` | io_uring_register(2) |
//! | `hands`, `framed` | what requests ask for |
//! | `kernels` | the kernel's ring behind one |
//!
//! # Invariants (cited by the `SAFETY` comments)
//! - **Layout:** liburing's `struct io_uring` is as its version 2 has it, which its soname promises.
//!
//! Lock order: a ring's inside, the states', the table, a ring's list of numbers that were lost.
//!
//! # Not here
//! Rings that a fork has copied: in the child they say EOPNOTSUPP, and a sentence. Copies of a ring's number (dup). SQPOLL and
//! IOPOLL, which the kernel refuses.

mod entering;
mod framed;
mod hands;
mod keeping;
mod kernels;
mod liburing;
mod polling;
mod registering;
mod syscalls;
mod table;
mod taking;
mod waiting;

/// Numbers of Linux (include/uapi/linux/io_uring.h).
mod abi {
    use std::ffi::c_uint;

    pub const SETUP_R_DISABLED: c_uint = 1 << 6;
    pub const SETUP_SUBMIT_ALL: c_uint = 1 << 7;
    /// CQSIZE, CLAMP, SUBMIT_ALL, COOP_TASKRUN, TASKRUN_FLAG, SINGLE_ISSUER: what the kernel's rings may be, and ours are.
    pub const SETUP_KNOWN: c_uint = 1 << 3 | 1 << 4 | SETUP_SUBMIT_ALL | 1 << 8 | 1 << 9 | 1 << 12;

    pub const ENTER_GETEVENTS: c_uint = 1;
    pub const ENTER_EXT_ARG: c_uint = 8;

    pub const OFF_SQ_RING: i64 = 0;
    pub const OFF_CQ_RING: i64 = 0x800_0000;
    pub const OFF_SQES: i64 = 0x1000_0000;
}
