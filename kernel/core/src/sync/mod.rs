//! Waiting: queues of blocked threads, and the lock that sleeps.
//!
//! Spin locks live in `mach::sync`; they are for short critical sections that never
//! block. What may block is guarded by [`Mutex`]; what waits for an event uses a
//! [`WaitQueue`].

mod mutex;
mod slot;
mod wait;

pub use mutex::{Mutex, MutexGuard, Sleeping};
pub use slot::Slot;
pub use wait::{Wait, WaitQueue};
