//! Names of sockets and of the ends of connections.

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use wire::{IPV4_HEADER_BYTES, IPV6_HEADER_BYTES, Protocol, Sum};

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

    /// No address and no port, of the family of `addr`.
    pub const fn any_of(addr: IpAddr) -> Self {
        match addr {
            IpAddr::V4(_) => Self::ANY,
            IpAddr::V6(_) => Self::v6(Ipv6Addr::UNSPECIFIED, 0),
        }
    }

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

    /// An IPv6 endpoint.
    pub const fn v6(addr: Ipv6Addr, port: u16) -> Self {
        Self {
            addr: IpAddr::V6(addr),
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

/// Both addresses of a packet, known to be of one family.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Addresses {
    /// Of an IPv4 packet.
    V4 { src: Ipv4Addr, dst: Ipv4Addr },
    /// Of an IPv6 packet.
    V6 { src: Ipv6Addr, dst: Ipv6Addr },
}

impl Addresses {
    pub const fn new(src: IpAddr, dst: IpAddr) -> Option<Self> {
        match (src, dst) {
            (IpAddr::V4(src), IpAddr::V4(dst)) => Some(Self::V4 { src, dst }),
            (IpAddr::V6(src), IpAddr::V6(dst)) => Some(Self::V6 { src, dst }),
            _ => None,
        }
    }

    pub const fn src(&self) -> IpAddr {
        match *self {
            Self::V4 { src, .. } => IpAddr::V4(src),
            Self::V6 { src, .. } => IpAddr::V6(src),
        }
    }

    pub const fn dst(&self) -> IpAddr {
        match *self {
            Self::V4 { dst, .. } => IpAddr::V4(dst),
            Self::V6 { dst, .. } => IpAddr::V6(dst),
        }
    }

    /// Those of an answer.
    pub const fn reversed(&self) -> Self {
        match *self {
            Self::V4 { src, dst } => Self::V4 { src: dst, dst: src },
            Self::V6 { src, dst } => Self::V6 { src: dst, dst: src },
        }
    }

    /// Bytes of an IP header without options or extensions.
    pub const fn header_len(&self) -> usize {
        match self {
            Self::V4 { .. } => IPV4_HEADER_BYTES,
            Self::V6 { .. } => IPV6_HEADER_BYTES,
        }
    }

    /// The sum of the pseudo header; `bytes` is the length of all behind the IP header.
    #[inline]
    pub fn pseudo(&self, protocol: Protocol, bytes: u32) -> Sum {
        match *self {
            Self::V4 { src, dst } => Sum::pseudo_v4(src, dst, protocol, bytes),
            Self::V6 { src, dst } => Sum::pseudo_v6(src, dst, protocol.number(), bytes),
        }
    }
}

/// A network of either family: the addresses that share its first bits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Prefix {
    network: IpAddr,
    len: u8,
}

impl Prefix {
    /// All IPv4 addresses.
    pub const ALL_V4: Self = Self {
        network: IpAddr::V4(Ipv4Addr::UNSPECIFIED),
        len: 0,
    };

    /// All IPv6 addresses.
    pub const ALL_V6: Self = Self {
        network: IpAddr::V6(Ipv6Addr::UNSPECIFIED),
        len: 0,
    };

    /// The network of `addr`; `None` if the prefix is longer than the address.
    pub fn new(addr: IpAddr, len: u8) -> Option<Self> {
        let network = match addr {
            IpAddr::V4(addr) if len <= 32 => {
                let mask = u32::MAX.checked_shl(32 - u32::from(len)).unwrap_or(0);
                IpAddr::V4(Ipv4Addr::from_bits(addr.to_bits() & mask))
            }
            IpAddr::V6(addr) if len <= 128 => {
                let mask = u128::MAX.checked_shl(128 - u32::from(len)).unwrap_or(0);
                IpAddr::V6(Ipv6Addr::from_bits(addr.to_bits() & mask))
            }
            _ => return None,
        };
        Some(Self { network, len })
    }

    /// Its first address.
    pub const fn network(self) -> IpAddr {
        self.network
    }

    /// Bits that its addresses share.
    pub const fn prefix_len(self) -> u8 {
        self.len
    }

    /// Whether `addr` is one of its addresses.
    pub fn contains(self, addr: IpAddr) -> bool {
        Self::new(addr, self.len).is_some_and(|other| other == self)
    }
}

/// An IPv4 address with the length of its network's prefix.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Cidr {
    addr: Ipv4Addr,
    prefix_len: u8,
    /// Follows from the others; each received packet asks for it.
    broadcast: Ipv4Addr,
}

impl Cidr {
    /// `None` if the prefix is longer than an address.
    pub const fn new(addr: Ipv4Addr, prefix_len: u8) -> Option<Self> {
        if prefix_len > 32 {
            return None;
        }
        let hosts = (u32::MAX as u64 >> prefix_len) as u32;
        let broadcast = match prefix_len {
            31.. => Ipv4Addr::BROADCAST,
            _ => Ipv4Addr::from_bits(addr.to_bits() | hosts),
        };
        Some(Self {
            addr,
            prefix_len,
            broadcast,
        })
    }

    /// From a netmask; `None` if its ones are not all in front.
    pub const fn from_mask(addr: Ipv4Addr, mask: Ipv4Addr) -> Option<Self> {
        let ones = mask.to_bits().leading_ones();
        match mask.to_bits().count_ones() == ones {
            true => Self::new(addr, ones as u8),
            false => None,
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
        self.broadcast
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_holds_the_addresses_that_share_its_bits() {
        let v6 = |text: &str| IpAddr::V6(text.parse().expect("an address"));
        let net = Prefix::new(v6("2001:db8:1:2::99"), 64).expect("a network");
        assert_eq!(net.network(), v6("2001:db8:1:2::"));
        assert!(net.contains(v6("2001:db8:1:2:ffff::1")));
        assert!(!net.contains(v6("2001:db8:1:3::1")));
        assert!(!net.contains(IpAddr::V4(Ipv4Addr::LOCALHOST)));
        assert!(Prefix::ALL_V6.contains(v6("::1")));
        assert!(!Prefix::ALL_V4.contains(v6("::1")));
        assert_eq!(Prefix::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 33), None);
    }
}
