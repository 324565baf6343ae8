//! io_uring: two rings that a program shares with the kernel, and the rules of what they carry.
//!
//! The problem: a program writes what it wants into a ring that it may change at any moment,
//! and reads what became of it from another. Whatever it writes there, it may harm only itself.
//!
//! The idea: the kernel keeps its own ends of both rings to itself and only shows them
//! ([`SubmissionQueue`], [`CompletionQueue`]). What it reads is masked or bounded, each entry is
//! copied once ([`Sqe`]) and decoded into an [`Operation`] that holds values only. A completion
//! that finds no room waits in a list whose room was made before its request began, so none is
//! lost and posting never needs memory.
//!
//! The rest are small rules without a ring: which requests wait for which ([`Drain`], [`Link`]),
//! which ones a cancellation means ([`Key`]), when a timeout has seen enough completions
//! ([`Counted`]), which buffer a program lends next ([`BufferRing`]).
//!
//! Layouts, numbers and flags are Linux's (include/uapi/linux/io_uring.h, io_uring_enter(2)).
//! Not here: files, memory, clocks, threads, and Linux's numbers of errors.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod buffers;
mod cancel;
mod complete;
mod counted;
mod decode;
mod drain;
mod frame;
mod geometry;
mod operation;
mod sqe;
mod submit;

pub use buffers::{BufferRing, Lent, RingBuffer};
pub use cancel::{Facts, Key};
pub use complete::{CompletionQueue, Cqe, CqeFlags};
pub use counted::Counted;
pub use decode::{Invalid, decode};
pub use drain::{Drain, Turn};
pub use frame::{Frame, Told};
pub use geometry::{CQE_BYTES, Geometry, Refusal, SQE_BYTES, SqFlags, offset};
pub use operation::{Buffers, Call, Direction, Operation, Place, TimeoutFlags};
pub use sqe::{Link, Plain, Sqe, SqeFlags};
pub use submit::{Next, SubmissionQueue};
