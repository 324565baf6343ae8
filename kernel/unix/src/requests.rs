//! The requests of ioctl(2) that Unix sockets know (unix(7)).

/// Whether the next byte of a stream is urgent, or was, stored as a C `int`.
pub(super) const SIOCATMARK: u32 = 0x8905;
/// Bytes that could be received, stored as a C `int`.
pub(super) const FIONREAD: u32 = 0x541b;
/// Bytes that the peer has not received, stored as a C `int`.
pub(super) const SIOCOUTQ: u32 = 0x5411;
