//! IPv6 headers (RFC 8200).

use core::net::Ipv6Addr;

use crate::Malformed;
use crate::bytes::{ipv6_at, put, put_u16, put_u32, u8_at, u16_at, u32_at};

/// Bytes of a fixed header.
pub const IPV6_HEADER_BYTES: usize = 40;

/// RFC 8200 5: every link takes packets of this size.
pub const IPV6_MTU_MIN: u16 = 1280;

/// Numbers that a next-header field may hold, apart from transports.
pub mod next_header {
    /// Options for every router (RFC 8200 4.3).
    pub const HOP_BY_HOP: u8 = 0;
    /// A source route (RFC 8200 4.4).
    pub const ROUTING: u8 = 43;
    /// A piece of a packet (RFC 8200 4.5).
    pub const FRAGMENT: u8 = 44;
    /// ICMPv6 (RFC 4443).
    pub const ICMPV6: u8 = 58;
    /// Nothing follows (RFC 8200 4.7).
    pub const NONE: u8 = 59;
    /// Options for the receiver (RFC 8200 4.6).
    pub const DESTINATION: u8 = 60;
}

/// A received fixed header whose length is right.
#[derive(Clone, Copy, Debug)]
pub struct Ipv6View<'a> {
    header: &'a [u8; IPV6_HEADER_BYTES],
}

impl<'a> Ipv6View<'a> {
    /// Checks the header at the start of `bytes`; `packet_len` bounds the whole packet.
    pub fn parse(bytes: &'a [u8], packet_len: usize) -> Result<Self, Malformed> {
        let header = bytes.first_chunk().ok_or(Malformed::Truncated)?;
        if header[0] >> 4 != 6 {
            return Err(Malformed::Version);
        }
        let view = Self { header };
        if IPV6_HEADER_BYTES + usize::from(view.payload_len()) > packet_len {
            return Err(Malformed::Length);
        }
        Ok(view)
    }

    /// Differentiated services and ECN.
    pub fn traffic_class(&self) -> u8 {
        (u32_at(self.header, 0) >> 20) as u8
    }

    /// Names the flow among others of this source (RFC 6437); 20 bits.
    pub fn flow_label(&self) -> u32 {
        u32_at(self.header, 0) & 0xf_ffff
    }

    /// Bytes behind the fixed header.
    pub fn payload_len(&self) -> u16 {
        u16_at(self.header, 4)
    }

    /// Number of the protocol or extension that follows.
    pub fn next_header(&self) -> u8 {
        u8_at(self.header, 6)
    }

    /// Hops left.
    pub fn hop_limit(&self) -> u8 {
        u8_at(self.header, 7)
    }

    /// Sender.
    pub fn src(&self) -> Ipv6Addr {
        ipv6_at(self.header, 8)
    }

    /// Receiver.
    pub fn dst(&self) -> Ipv6Addr {
        ipv6_at(self.header, 24)
    }
}

/// A fixed header to send.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ipv6Repr {
    /// Sender.
    pub src: Ipv6Addr,
    /// Receiver.
    pub dst: Ipv6Addr,
    /// Number of what follows.
    pub next_header: u8,
    /// Bytes behind the header.
    pub payload_len: u16,
    /// Hops that it may take.
    pub hop_limit: u8,
    /// Differentiated services and ECN.
    pub traffic_class: u8,
    /// Of the flow; the low 20 bits are sent.
    pub flow_label: u32,
}

impl Ipv6Repr {
    /// Writes [`IPV6_HEADER_BYTES`] bytes.
    pub fn emit(&self, bytes: &mut [u8]) {
        let class = u32::from(self.traffic_class) << 20;
        put_u32(bytes, 0, 6 << 28 | class | self.flow_label & 0xf_ffff);
        put_u16(bytes, 4, self.payload_len);
        put(bytes, 6, [self.next_header, self.hop_limit]);
        put(bytes, 8, self.src.octets());
        put(bytes, 24, self.dst.octets());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_reads_as_it_was_written() {
        let repr = Ipv6Repr {
            src: Ipv6Addr::LOCALHOST,
            dst: Ipv6Addr::new(0xfe80, 0, 0, 0, 1, 2, 3, 4),
            next_header: next_header::ICMPV6,
            payload_len: 8,
            hop_limit: 255,
            traffic_class: 0xb9,
            flow_label: 0xf_1234,
        };
        let mut bytes = [0; IPV6_HEADER_BYTES];
        repr.emit(&mut bytes);
        let view = Ipv6View::parse(&bytes, 48).expect("a header");
        assert_eq!((view.src(), view.dst()), (repr.src, repr.dst));
        assert_eq!(
            (view.traffic_class(), view.flow_label()),
            (repr.traffic_class, repr.flow_label)
        );
        assert_eq!((view.next_header(), view.hop_limit()), (58, 255));
        assert_eq!(
            Ipv6View::parse(&bytes, 47).err(),
            Some(Malformed::Length),
            "the payload is cut short"
        );
    }
}
