//! Refusals of the mechanisms of `core/`, in the kernel's words.
//!
//! Neither their errors nor the kernel's [`Error`] are types of this crate, so no conversion
//! between the two can be written. What works inside a mechanism ends with a [`Refusal`]
//! instead: either becomes one by `?`, and it becomes the kernel's error where the mechanism
//! is left.

use sync::Error;

/// Why a mechanism, or the kernel inside it, did not do what was asked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Refusal(Error);

/// What work inside a mechanism ends with.
pub type Answer<T> = Result<T, Refusal>;

/// The same where there is nothing to leave.
pub fn refused(by: impl Into<Refusal>) -> Error {
    by.into().0
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Self {
        Self(error)
    }
}

impl From<Refusal> for Error {
    fn from(refusal: Refusal) -> Self {
        refusal.0
    }
}

impl From<vma::TooManyAreas> for Refusal {
    fn from(_: vma::TooManyAreas) -> Self {
        Self(Error::OutOfMemory)
    }
}

impl From<pipe::Refusal> for Refusal {
    fn from(refusal: pipe::Refusal) -> Self {
        Self(match refusal {
            pipe::Refusal::OutOfMemory => Error::OutOfMemory,
            pipe::Refusal::DoesNotFit => Error::Busy,
            pipe::Refusal::Torn => Error::BadAddress,
        })
    }
}
