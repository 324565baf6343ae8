//! What all families of Linux's system calls share.
//!
//! The problem: some three hundred calls decode descriptors, paths, arrays of buffers, times
//! and masks out of registers and a program's memory, and fail with one of Linux's numbers.
//! Each such rule must be written once, or two calls differ where Linux does not.
//!
//! The idea: a [`call::Call`] is one call under way. It gives its arguments typed, and finds
//! the files ([`descriptor`]) and places ([`path`]) that they name. A family of calls (a
//! module of the `linux-*` crates) says in a table of [`call::Entry`] which numbers it
//! answers; crate `linux` merges the tables at compile time.
//!
//! errno exists only here: [`errno`] turns each error of the kernel into Linux's number, and
//! nothing below knows that there are such numbers.
//!
//! Not here: what a call does, and the way in and out (`linux`).
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod call;
pub mod deadline;
pub mod descriptor;
pub mod errno;
pub mod iovec;
pub mod missing;
pub mod path;
pub mod restart;
pub mod sigmask;
pub mod timespec;

pub use call::{Arg, Call, Entry, Outcome};
pub use errno::Errno;
