//! Refusals of the protocols (`core/inet`), in the kernel's words.
//!
//! Neither its errors nor the kernel's [`Error`] are types of this crate, so no conversion
//! between the two can be written. What works inside a stack ends with a [`Refusal`]
//! instead: either becomes one by `?`, and it becomes the kernel's error where the mechanism
//! is left.

use sync::Error;

/// Why a mechanism, or the kernel inside it, did not do what was asked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Refusal(Error);

/// What work inside a stack ends with.
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

impl From<inet::Error> for Refusal {
    fn from(error: inet::Error) -> Self {
        Self(match error {
            inet::Error::BadSocket => Error::BadFile,
            inet::Error::InvalidState => Error::Invalid,
            inet::Error::WouldBlock => Error::WouldBlock,
            inet::Error::InProgress => Error::AlreadyInProgress,
            inet::Error::AlreadyConnected => Error::IsConnected,
            inet::Error::NotConnected => Error::NotConnected,
            inet::Error::DestinationRequired => Error::DestinationRequired,
            inet::Error::AddressInUse => Error::AddressInUse,
            inet::Error::AddressNotAvailable => Error::AddressNotAvailable,
            inet::Error::NetworkUnreachable => Error::NetworkUnreachable,
            inet::Error::HostUnreachable => Error::HostUnreachable,
            inet::Error::ProtocolUnreachable => Error::NoSuchOption,
            inet::Error::HostDown => Error::HostDown,
            inet::Error::Protocol => Error::Protocol,
            inet::Error::Prohibited => Error::AccessDenied,
            inet::Error::ConnectionRefused => Error::ConnectionRefused,
            inet::Error::ConnectionReset => Error::ConnectionReset,
            inet::Error::ConnectionAborted => Error::ConnectionAborted,
            inet::Error::BrokenPipe => Error::BrokenPipe,
            inet::Error::TimedOut => Error::ConnectionTimedOut,
            inet::Error::MessageTooLong => Error::MessageTooLong,
            inet::Error::BroadcastNotAllowed => Error::AccessDenied,
            inet::Error::NoBuffers => Error::NoBuffers,
        })
    }
}
