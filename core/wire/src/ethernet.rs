//! Ethernet II headers (IEEE 802.3), without tags.

use core::fmt;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::Malformed;
use crate::bytes::{array, put, put_u16, u16_at};

/// Bytes of a header.
pub const ETHERNET_HEADER_BYTES: usize = 14;

/// A MAC address.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct MacAddr(pub [u8; 6]);

impl MacAddr {
    /// Everybody.
    pub const BROADCAST: Self = Self([0xff; 6]);

    /// Whether it names several stations, broadcast included.
    pub const fn is_multicast(self) -> bool {
        self.0[0] & 1 != 0
    }

    /// The station of an IPv4 group (RFC 1112 6.4).
    pub const fn of_group_v4(group: Ipv4Addr) -> Self {
        let [_, b, c, d] = group.octets();
        Self([0x01, 0x00, 0x5e, b & 0x7f, c, d])
    }

    /// The station of an IPv6 group (RFC 2464 7).
    pub const fn of_group_v6(group: Ipv6Addr) -> Self {
        let [.., a, b, c, d] = group.octets();
        Self([0x33, 0x33, a, b, c, d])
    }

    /// The station of a group.
    pub const fn of_group(group: IpAddr) -> Self {
        match group {
            IpAddr::V4(group) => Self::of_group_v4(group),
            IpAddr::V6(group) => Self::of_group_v6(group),
        }
    }

    /// Whether it can be the address of one station.
    pub fn is_station(self) -> bool {
        !self.is_multicast() && self != Self::default()
    }
}

impl fmt::Display for MacAddr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d, e, g] = self.0;
        write!(f, "{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{g:02x}")
    }
}

impl fmt::Debug for MacAddr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// What a frame carries.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum EtherType {
    /// 0x0800
    Ipv4,
    /// 0x0806
    Arp,
    /// 0x86dd
    Ipv6,
    /// Anything else.
    Other(u16),
}

impl EtherType {
    const fn from_number(number: u16) -> Self {
        match number {
            0x0800 => Self::Ipv4,
            0x0806 => Self::Arp,
            0x86dd => Self::Ipv6,
            other => Self::Other(other),
        }
    }

    /// Its number.
    pub const fn number(self) -> u16 {
        match self {
            Self::Ipv4 => 0x0800,
            Self::Arp => 0x0806,
            Self::Ipv6 => 0x86dd,
            Self::Other(number) => number,
        }
    }
}

/// A header.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct EthernetRepr {
    /// Receiver.
    pub dst: MacAddr,
    /// Sender.
    pub src: MacAddr,
    /// What follows.
    pub ether_type: EtherType,
}

impl EthernetRepr {
    /// Reads the header at the start of `frame`.
    #[inline]
    pub fn parse(frame: &[u8]) -> Result<Self, Malformed> {
        let header: &[u8; ETHERNET_HEADER_BYTES] =
            frame.first_chunk().ok_or(Malformed::Truncated)?;
        Ok(Self {
            dst: MacAddr(array(header, 0)),
            src: MacAddr(array(header, 6)),
            ether_type: EtherType::from_number(u16_at(header, 12)),
        })
    }

    /// Writes the header at the start of `frame`.
    #[inline]
    pub fn emit(&self, frame: &mut [u8]) {
        put(frame, 0, self.dst.0);
        put(frame, 6, self.src.0);
        put_u16(frame, 12, self.ether_type.number());
    }
}
