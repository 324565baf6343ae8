//! IPv4 headers (RFC 791).

use core::net::Ipv4Addr;

use crate::bytes::{ipv4_at, put, put_u16, u8_at, u16_at};
use crate::{Malformed, Sum};

/// Bytes of a header without options.
pub const IPV4_HEADER_BYTES: usize = 20;

/// Bytes of a header with a router alert.
pub const IPV4_ROUTER_ALERT_BYTES: usize = IPV4_HEADER_BYTES + 4;

const DONT_FRAGMENT: u16 = 0x4000;
const MORE_FRAGMENTS: u16 = 0x2000;
const OFFSET_MASK: u16 = 0x1fff;

/// The protocol in a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Protocol {
    /// 1
    Icmp,
    /// 2
    Igmp,
    /// 6
    Tcp,
    /// 17
    Udp,
    /// Anything else.
    Other(u8),
}

impl Protocol {
    /// From the assigned number.
    pub const fn from_number(number: u8) -> Self {
        match number {
            1 => Self::Icmp,
            2 => Self::Igmp,
            6 => Self::Tcp,
            17 => Self::Udp,
            other => Self::Other(other),
        }
    }

    /// The assigned number.
    pub const fn number(self) -> u8 {
        match self {
            Self::Icmp => 1,
            Self::Igmp => 2,
            Self::Tcp => 6,
            Self::Udp => 17,
            Self::Other(number) => number,
        }
    }
}

/// A received header whose lengths and checksum are right.
#[derive(Clone, Copy, Debug)]
pub struct Ipv4View<'a> {
    header: &'a [u8],
}

impl<'a> Ipv4View<'a> {
    /// Checks the header at the start of `bytes`; `packet_len` is how many bytes the whole
    /// packet has at most, over all its buffers.
    #[inline(always)]
    pub fn parse(bytes: &'a [u8], packet_len: usize) -> Result<Self, Malformed> {
        let first = *bytes.first().ok_or(Malformed::Truncated)?;
        if first >> 4 != 4 {
            return Err(Malformed::Version);
        }
        let header_len = usize::from(first & 0xf) * 4;
        if header_len < IPV4_HEADER_BYTES {
            return Err(Malformed::Length);
        }
        let header = bytes.get(..header_len).ok_or(Malformed::Truncated)?;
        let total = usize::from(u16_at(header, 2));
        if total < header_len || total > packet_len {
            return Err(Malformed::Length);
        }
        let sum = match header.first_chunk::<IPV4_HEADER_BYTES>() {
            Some(plain) if header_len == plain.len() => Sum::of_twenty(plain),
            _ => Sum::new().bytes(header),
        };
        match sum.is_valid() {
            true => Ok(Self { header }),
            false => Err(Malformed::Checksum),
        }
    }

    /// The header's bytes, options included.
    pub const fn header(&self) -> &'a [u8] {
        self.header
    }

    /// Bytes of header and payload.
    #[inline]
    pub fn total_len(&self) -> usize {
        usize::from(u16_at(self.header, 2))
    }

    /// Differentiated services and ECN.
    pub fn tos(&self) -> u8 {
        u8_at(self.header, 1)
    }

    /// Names the packet among others of this source, for reassembly.
    pub fn ident(&self) -> u16 {
        u16_at(self.header, 4)
    }

    /// Whether this is a piece of a packet.
    #[inline]
    pub fn is_fragment(&self) -> bool {
        u16_at(self.header, 6) & (MORE_FRAGMENTS | OFFSET_MASK) != 0
    }

    /// Whether pieces follow behind this one.
    pub fn more_fragments(&self) -> bool {
        u16_at(self.header, 6) & MORE_FRAGMENTS != 0
    }

    /// Where the piece's payload belongs, in bytes.
    pub fn fragment_offset(&self) -> usize {
        usize::from(u16_at(self.header, 6) & OFFSET_MASK) * 8
    }

    /// Hops left.
    pub fn ttl(&self) -> u8 {
        u8_at(self.header, 8)
    }

    /// What follows.
    #[inline]
    pub fn protocol(&self) -> Protocol {
        Protocol::from_number(u8_at(self.header, 9))
    }

    /// Sender.
    #[inline]
    pub fn src(&self) -> Ipv4Addr {
        ipv4_at(self.header, 12)
    }

    /// Receiver.
    #[inline]
    pub fn dst(&self) -> Ipv4Addr {
        ipv4_at(self.header, 16)
    }
}

/// Which piece of which packet a header is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ipv4Fragment {
    /// Of the whole packet.
    pub ident: u16,
    /// Where the piece belongs, in bytes; a multiple of eight.
    pub offset: u16,
    /// Whether pieces follow behind it.
    pub has_more: bool,
}

/// A header to send: no options.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ipv4Repr {
    /// Sender.
    pub src: Ipv4Addr,
    /// Receiver.
    pub dst: Ipv4Addr,
    /// What follows.
    pub protocol: Protocol,
    /// Bytes behind the header. A header for segmentation may stand for up to 65515.
    pub payload_len: u16,
    /// Hops that it may take.
    pub ttl: u8,
    /// Differentiated services and ECN.
    pub tos: u8,
}

impl Ipv4Repr {
    /// Writes [`IPV4_HEADER_BYTES`] bytes with their checksum. Routers may not fragment the
    /// packet.
    #[inline]
    pub fn emit(&self, bytes: &mut [u8]) {
        self.emit_with(bytes, 0, DONT_FRAGMENT);
    }

    /// The same for a piece of a packet, which routers may cut further.
    pub fn emit_fragment(&self, bytes: &mut [u8], fragment: Ipv4Fragment) {
        let more = if fragment.has_more { MORE_FRAGMENTS } else { 0 };
        let place = (fragment.offset / 8) & OFFSET_MASK;
        self.emit_with(bytes, fragment.ident, more | place);
    }

    /// The same with a router alert (RFC 2113), as IGMP has it: writes
    /// [`IPV4_ROUTER_ALERT_BYTES`] bytes.
    pub fn emit_with_router_alert(&self, bytes: &mut [u8]) {
        let Some(header) = bytes.first_chunk_mut::<IPV4_ROUTER_ALERT_BYTES>() else {
            return;
        };
        self.emit(header);
        header[0] = 0x46;
        let total = usize::from(self.payload_len) + IPV4_ROUTER_ALERT_BYTES;
        put_u16(header, 2, total as u16);
        put(header, 10, [0, 0]);
        put(header, IPV4_HEADER_BYTES, [0x94, 4, 0, 0]);
        let checksum = Sum::new().bytes(header).checksum();
        put_u16(header, 10, checksum);
    }

    #[inline]
    fn emit_with(&self, bytes: &mut [u8], ident: u16, fragment: u16) {
        let Some(header) = bytes.first_chunk_mut::<IPV4_HEADER_BYTES>() else {
            return;
        };
        *header = [0; IPV4_HEADER_BYTES];
        header[0] = 0x45;
        header[1] = self.tos;
        put_u16(
            header,
            2,
            self.payload_len.saturating_add(IPV4_HEADER_BYTES as u16),
        );
        put_u16(header, 4, ident);
        put_u16(header, 6, fragment);
        header[8] = self.ttl;
        header[9] = self.protocol.number();
        put(header, 12, self.src.octets());
        put(header, 16, self.dst.octets());
        let checksum = Sum::new().bytes(header).checksum();
        put_u16(header, 10, checksum);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const REPR: Ipv4Repr = Ipv4Repr {
        src: Ipv4Addr::LOCALHOST,
        dst: Ipv4Addr::new(224, 0, 0, 22),
        protocol: Protocol::Igmp,
        payload_len: 16,
        ttl: 1,
        tos: 0xc0,
    };

    #[test]
    fn a_piece_reads_as_it_was_written() {
        let mut bytes = [0; IPV4_HEADER_BYTES];
        let fragment = Ipv4Fragment {
            ident: 77,
            offset: 1480,
            has_more: true,
        };
        REPR.emit_fragment(&mut bytes, fragment);
        let view = Ipv4View::parse(&bytes, 36).expect("a header");
        assert!(view.is_fragment() && view.more_fragments());
        assert_eq!((view.ident(), view.fragment_offset()), (77, 1480));
    }

    #[test]
    fn a_router_alert_lies_inside_the_header() {
        let mut bytes = [0; 40];
        REPR.emit_with_router_alert(&mut bytes);
        let view = Ipv4View::parse(&bytes, 40).expect("a header");
        assert_eq!((view.header().len(), view.total_len()), (24, 40));
        assert_eq!(view.header()[20..], [0x94, 4, 0, 0]);
    }
}
