//! What a program is told of a request's end.

use block::{Done, Failure};
use sync::{Error, Result};

/// Why it failed.
pub(crate) fn error_of(failure: Failure) -> Error {
    match failure {
        Failure::Medium | Failure::TimedOut | Failure::Gone => Error::Io,
        Failure::Unsupported => Error::Unsupported,
        // The disk has become smaller since its end was looked at.
        Failure::OutOfRange => Error::Io,
        Failure::Misaligned => Error::Invalid,
        Failure::ReadOnly => Error::NotPermitted,
    }
}

/// Whether it succeeded; what a write is worth is fsync(2)'s matter.
#[inline]
pub(crate) fn settle(result: core::result::Result<Done, Failure>) -> Result<()> {
    if let Done::Written(written) = result.map_err(error_of)? {
        written.leave_volatile();
    }
    Ok(())
}
