//! Names of sockets.

use alloc::sync::Arc;
use core::net::{IpAddr, Ipv4Addr, SocketAddr};

use super::{PacketAddress, XdpAddress};

/// Where a socket is found.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum SocketAddress {
    /// AF_UNSPEC: no name; connecting to it disconnects.
    Unspecified,
    /// A name of the Unix family.
    Unix(UnixAddress),
    /// An IP address and port.
    Inet(SocketAddr),
    /// An interface and what passes it.
    Packet(PacketAddress),
    /// A netlink socket.
    Netlink {
        /// Its number; 0 is the kernel.
        port: u32,
        /// Its first 32 groups: bit `n - 1` for group `n`.
        groups: u32,
    },
    /// A link whose frames a program takes.
    Xdp(XdpAddress),
}

impl SocketAddress {
    /// 0.0.0.0:0, what an unbound IPv4 socket is called.
    pub const INET_ANY: Self = Self::Inet(SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0));
    /// What an unbound Unix socket is called.
    pub const UNIX_UNNAMED: Self = Self::Unix(UnixAddress::Unnamed);
}

/// A name of the Unix family.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum UnixAddress {
    /// It has no name.
    Unnamed,
    /// A path in the file system, without the final 0.
    Path(Arc<[u8]>),
    /// A name apart from the file system, without the leading 0; any bytes.
    Abstract(Arc<[u8]>),
}
