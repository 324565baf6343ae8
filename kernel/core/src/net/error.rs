//! The stack's errors in the kernel's words.

use crate::error::Error;

impl From<inet::Error> for Error {
    fn from(error: inet::Error) -> Self {
        match error {
            inet::Error::BadSocket => Self::BadFile,
            inet::Error::InvalidState => Self::Invalid,
            inet::Error::WouldBlock => Self::WouldBlock,
            inet::Error::InProgress => Self::AlreadyInProgress,
            inet::Error::AlreadyConnected => Self::IsConnected,
            inet::Error::NotConnected => Self::NotConnected,
            inet::Error::DestinationRequired => Self::DestinationRequired,
            inet::Error::AddressInUse => Self::AddressInUse,
            inet::Error::AddressNotAvailable => Self::AddressNotAvailable,
            inet::Error::NetworkUnreachable => Self::NetworkUnreachable,
            inet::Error::HostUnreachable => Self::HostUnreachable,
            inet::Error::ProtocolUnreachable => Self::NoSuchOption,
            inet::Error::HostDown => Self::HostDown,
            inet::Error::Protocol => Self::Protocol,
            inet::Error::Prohibited => Self::AccessDenied,
            inet::Error::ConnectionRefused => Self::ConnectionRefused,
            inet::Error::ConnectionReset => Self::ConnectionReset,
            inet::Error::ConnectionAborted => Self::ConnectionAborted,
            inet::Error::BrokenPipe => Self::BrokenPipe,
            inet::Error::TimedOut => Self::ConnectionTimedOut,
            inet::Error::MessageTooLong => Self::MessageTooLong,
            inet::Error::BroadcastNotAllowed => Self::AccessDenied,
            inet::Error::NoBuffers => Self::NoBuffers,
        }
    }
}
