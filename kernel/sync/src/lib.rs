//! Waiting: queues of blocked threads, the lock that sleeps, who hears that an object is ready;
//! and why the kernel refuses something ([`Error`]), a wait that a signal ended among it.
//!
//! Spin locks live in `mach::sync`; they are for short critical sections that never
//! block. What may block is guarded by [`Mutex`]; what waits for an event uses a
//! [`WaitQueue`]; who waits for several objects at once observes each [`poll::Pollee`].
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod error;
mod mutex;
pub mod poll;
mod slot;
mod wait;

pub use error::{Error, Restart, Result};
pub use mutex::{Mutex, MutexGuard, Sleeping};
pub use slot::Slot;
pub use wait::{Wait, WaitQueue};
