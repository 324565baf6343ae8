//! System V's interprocess communication (svipc(7)): what is the same for its three kinds, and
//! the rules of semaphores and message queues.
//!
//! Objects live until somebody removes them, whoever made them. A [`Registry`] gives them
//! numbers, finds them by key, and says who may use them. A [`SemaphoreSet`] does several
//! operations at once or none; an [`Undo`] remembers what a process' end takes back. A
//! [`Queue`] holds messages with types.
//!
//! Nobody waits here: what cannot be done now says so, and the kernel tries again once the
//! object has changed. Not here: memory itself, errno, the layout of C's structures.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod message;
mod registry;
mod semaphore;
#[cfg(test)]
mod tests;

pub use message::{Message, Pick, Queue, QueueError};
pub use registry::{Caller, Entry, Error, GetRequest, Owner, Registry};
pub use semaphore::{Blocked, Operation, SemaphoreSet, Undo, VALUE_MAX};
