//! Why a socket call failed.

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
