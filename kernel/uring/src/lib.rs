//! io_uring: the rings of `core/uring` as a file, and the requests that come out of them.
//!
//! The problem: a program hands over many operations at once and does not wait for them. Who
//! does them, with which memory and descriptors, and when?
//!
//! The rule: **the thread that submitted a request does all of it**, in io_uring_enter(2) or on
//! its way back to its program. There is no pool of workers. A request is tried without waiting
//! (`Flags::NO_WAIT`); if it would wait, it observes its file and is tried again when that says
//! something has changed. A file that nobody can observe (a regular file) is asked outright, and
//! the submitter waits for it as it would in read(2). A file that begins transfers, as a disk does, has
//! plain ones without a request ([`direct`]).
//!
//! So whoever notices that a request can go on (a file's notice, a timer, a cancellation, a close)
//! only puts it into its submitter's queue and interrupts that thread, as a signal does
//! ([`Submitter`]). Completions of requests are posted in ordinary context, by the submitter only. When a
//! thread ends or runs another program, its requests end with it.
//!
//! Bounds: a ring has `REQUESTS_MAX` requests under way, the machine [`request::most`]; a
//! completion's place is reserved before its request begins. Rings have a share of memory.
//!
//! Lock order: a ring's submission queue or groups of buffers (they may sleep), then its state,
//! its table, a submitter's queue, the scheduler. A file's list of observers comes before a
//! submitter's queue. Nothing of a request is locked while it is tried.
//!
//! Not here: the meaning of operations (`linux-uring`, through [`Abi`]), SQPOLL.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod abi;
mod advance;
mod attempt;
mod cancel;
mod direct;
mod finish;
mod no_wait;
mod poll;
mod registered;
mod request;
mod ring;
mod submit;
mod submitter;
mod timeout;
mod wait;

pub use abi::{Abi, Attempt, Failure};
pub use registered::Registered;
pub use ring::{Ring, RingFile, SQES_OFFSET, Setup};
pub use submitter::Submitter;
