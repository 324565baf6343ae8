//! Names of sockets and of the ends of connections.

use core::net::{IpAddr, Ipv4Addr};

/// A socket of one stack: an index with a generation, so that a stale id finds nothing.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
pub struct SocketId {
    pub(crate) index: u32,
    pub(crate) generation: u32,
}

impl SocketId {
    /// The slot; small and dense, for a shell's own arrays.
    pub const fn index(self) -> usize {
        self.index as usize
    }
}

/// The kind of a socket.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Transport {
    /// A byte stream.
    Tcp,
    /// Datagrams.
    Udp,
}

/// An address and a port.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Endpoint {
    /// The host; unspecified for any of ours.
    pub addr: IpAddr,
    /// The port; zero for none.
    pub port: u16,
}

impl Endpoint {
    /// No address and no port.
    pub const ANY: Self = Self {
        addr: IpAddr::V4(Ipv4Addr::UNSPECIFIED),
        port: 0,
    };

    /// An endpoint.
    pub const fn new(addr: IpAddr, port: u16) -> Self {
        Self { addr, port }
    }

    /// An IPv4 endpoint.
    pub const fn v4(addr: Ipv4Addr, port: u16) -> Self {
        Self {
            addr: IpAddr::V4(addr),
            port,
        }
    }
}

/// A connection's name: its two ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct FourTuple {
    pub local: Endpoint,
    pub remote: Endpoint,
}

/// An IPv4 address with the length of its network's prefix.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Cidr {
    addr: Ipv4Addr,
    prefix_len: u8,
}

impl Cidr {
    /// `None` if the prefix is longer than an address.
    pub const fn new(addr: Ipv4Addr, prefix_len: u8) -> Option<Self> {
        if prefix_len <= 32 {
            Some(Self { addr, prefix_len })
        } else {
            None
        }
    }

    /// From a netmask; `None` if its ones are not all in front.
    pub const fn from_mask(addr: Ipv4Addr, mask: Ipv4Addr) -> Option<Self> {
        let ones = mask.to_bits().leading_ones();
        if mask.to_bits().count_ones() == ones {
            Some(Self {
                addr,
                prefix_len: ones as u8,
            })
        } else {
            None
        }
    }

    /// The host's address.
    pub const fn addr(self) -> Ipv4Addr {
        self.addr
    }

    /// Bits in the network's prefix.
    pub const fn prefix_len(self) -> u8 {
        self.prefix_len
    }

    /// The network's mask.
    pub const fn mask(self) -> Ipv4Addr {
        Ipv4Addr::from_bits((u32::MAX as u64).wrapping_shl(32 - self.prefix_len as u32) as u32)
    }

    /// Whether `other` is on this network.
    pub const fn contains(self, other: Ipv4Addr) -> bool {
        (self.addr.to_bits() ^ other.to_bits()) & self.mask().to_bits() == 0
    }

    /// The address of everybody on this network; the host's own where there is no other.
    pub const fn broadcast(self) -> Ipv4Addr {
        if self.prefix_len >= 31 {
            return Ipv4Addr::BROADCAST;
        }
        Ipv4Addr::from_bits(self.addr.to_bits() | !self.mask().to_bits())
    }
}
