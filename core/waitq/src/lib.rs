//! Waiting: queues of threads that wait for a condition, the lock whose waiters sleep, and
//! deadlines.
//!
//! The problem: a condition is looked at and changed on different CPUs. Between the look and the
//! sleep it may become true, and then nobody may be left to wake the sleeper. A waker that wakes
//! one of several must not spend its wake-up on one that goes away.
//!
//! The idea: the waiter enters the [`WaitQueue`], *then* looks at the condition, then parks; the
//! waker changes the condition, *then* wakes. A wake-up that comes before the park is remembered
//! by whoever parks threads. And whoever was in a queue looks at the condition once more after it
//! has left it, *whatever* ended its wait: it may have been chosen by a waker that thus chose
//! nobody else. One that finds the condition true before it parks may have been chosen as well,
//! for something that came later: it hands that wake-up on.
//!
//! A waker that finds the queue empty does not lock it. So the condition must be changed under a
//! lock that the look takes too, or by an exchange ([`Gate`] does so): a weaker store may become
//! visible only after the look at the queue.
//!
//! Wake-ups may be spurious. A waiter for which there is no memory in the queue is told so, and
//! looks again soon instead ([`Parking::Unqueued`]).
//!
//! [`Deadlines`] are those of one CPU, in their order. One that was taken out to be called can
//! not be cancelled any more: so whoever cancels one knows whether it was in time.
//!
//! Lock order: a queue's lock is innermost but for what [`Thread::unpark`] takes, which is called
//! without it.
//!
//! `tests/model` has `loom` try the orders of waits, wake-ups and time-outs with exactly this
//! code, and shows that it notices when a step is missing; `tests/queues.rs` and
//! `tests/deadlines.rs` compare long histories with plain lists.
//!
//! Not here: how threads park, clocks, signals, errors.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod deadlines;
mod gate;
mod host;
mod queue;
mod waiters;

pub use deadlines::{DeadlineId, Deadlines};
pub use gate::Gate;
pub use host::{Host, LockOf, Thread};
pub use queue::{Parking, WaitQueue};
pub use waiters::Waiters;
