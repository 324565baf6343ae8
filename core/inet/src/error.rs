//! Why a socket call failed.

use core::fmt;

/// Why a socket call failed. The Linux layer maps each to one errno.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Error {
    /// The id names no socket (any more).
    BadSocket,
    /// The call does not fit the kind or the state of the socket (EINVAL, EOPNOTSUPP).
    InvalidState,
    /// Nothing to receive or accept now, or no room to send (EAGAIN).
    WouldBlock,
    /// A TCP connection is being made already (EALREADY).
    InProgress,
    /// The socket is connected (EISCONN).
    AlreadyConnected,
    /// The socket is not connected (ENOTCONN).
    NotConnected,
    /// A datagram socket without a peer needs a destination (EDESTADDRREQ).
    DestinationRequired,
    /// The local address or port is taken (EADDRINUSE).
    AddressInUse,
    /// The address is none of ours, or no ephemeral port is free (EADDRNOTAVAIL).
    AddressNotAvailable,
    /// No route (ENETUNREACH).
    NetworkUnreachable,
    /// The next hop does not answer, or a router said so (EHOSTUNREACH).
    HostUnreachable,
    /// The peer's host does not speak the protocol (ENOPROTOOPT).
    ProtocolUnreachable,
    /// The host is not there, says a router (EHOSTDOWN).
    HostDown,
    /// Somebody found a flaw in our packet (EPROTO).
    Protocol,
    /// Somebody on the way forbids it (EACCES).
    Prohibited,
    /// The peer answered with a reset, or ICMP said that the port is closed (ECONNREFUSED).
    ConnectionRefused,
    /// The peer reset the connection (ECONNRESET).
    ConnectionReset,
    /// The connection ended before it was accepted (ECONNABORTED).
    ConnectionAborted,
    /// Sending was shut down, or the connection is gone (EPIPE).
    BrokenPipe,
    /// The peer does not answer (ETIMEDOUT).
    TimedOut,
    /// A datagram larger than the network takes (EMSGSIZE).
    MessageTooLong,
    /// Sending to a broadcast address was not allowed (EACCES).
    BroadcastNotAllowed,
    /// A limit on sockets or buffers is reached (ENOBUFS).
    NoBuffers,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::BadSocket => "no such socket",
            Self::InvalidState => "not possible in this state",
            Self::WouldBlock => "would wait: nothing there, or no room",
            Self::InProgress => "already connecting",
            Self::AlreadyConnected => "already connected",
            Self::NotConnected => "not connected",
            Self::DestinationRequired => "a destination is required",
            Self::AddressInUse => "address in use",
            Self::AddressNotAvailable => "address not available",
            Self::NetworkUnreachable => "network unreachable",
            Self::HostUnreachable => "host unreachable",
            Self::ProtocolUnreachable => "protocol unreachable",
            Self::HostDown => "host is down",
            Self::Protocol => "protocol error",
            Self::Prohibited => "prohibited on the way",
            Self::ConnectionRefused => "connection refused",
            Self::ConnectionReset => "connection reset by the peer",
            Self::ConnectionAborted => "connection aborted",
            Self::BrokenPipe => "sending is over",
            Self::TimedOut => "timed out",
            Self::MessageTooLong => "message too long",
            Self::BroadcastNotAllowed => "broadcast not allowed",
            Self::NoBuffers => "no buffers",
        })
    }
}

impl core::error::Error for Error {}
