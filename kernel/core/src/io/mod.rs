//! Where bytes of a read go, and where bytes of a write come from.
//!
//! A [`Sink`] or [`Source`] hides whether the other side is a program's memory (one range
//! or the ranges of readv/writev) or a buffer of the kernel's (exec, sendfile, splice).
//! Both count what has passed. `put` and `take` may block on a page fault: never use
//! them with a spin lock held. `try_put` and `try_take` stop at a fault instead; the
//! caller drops its lock, calls `resolve` and tries again.

mod ranges;
mod sink;
mod source;

pub use ranges::UserRange;
pub use sink::Sink;
pub use source::Source;
