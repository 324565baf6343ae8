//! Where bytes of a read go, and where bytes of a write come from.
//!
//! A [`Sink`] or [`Source`] hides whether the other side is a program's memory (one range
//! or the ranges of readv/writev) or a buffer of the kernel's (exec, sendfile, splice).
//! Both count what has passed. `put` and `take` may block on a page fault: never use
//! them with a spin lock held. `try_put` and `try_take` stop at a fault instead; the
//! caller drops its lock, calls `resolve` and goes on where it stopped.
//!
//! A page that is not there never ends a transfer; an address that the program may not use
//! does. Then a stream keeps what passed before it and says how much (`put`, `take`,
//! [`partial`]), as POSIX has it: an error means that nothing passed. A message passes whole
//! or not at all (`put_whole`, `take_whole`).

use sync::{Error, Result};

mod pipe;
mod ranges;
mod remote;
mod sink;
mod source;

pub use ranges::UserRange;
pub use sink::Sink;
pub use source::Source;

/// What a call on a stream returns that moved `done` bytes before `error` stopped it.
pub fn partial(done: usize, error: Error) -> Result<usize> {
    if done == 0 { Err(error) } else { Ok(done) }
}
