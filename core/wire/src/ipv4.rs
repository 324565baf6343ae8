//! IPv4 headers (RFC 791).

use core::net::Ipv4Addr;

use crate::bytes::{ipv4_at, put, put_u16, u8_at, u16_at};
use crate::{Malformed, Sum};

/// Bytes of a header without options.
pub const IPV4_HEADER_BYTES: usize = 20;

const DONT_FRAGMENT: u16 = 0x4000;
const MORE_FRAGMENTS: u16 = 0x2000;
const OFFSET_MASK: u16 = 0x1fff;

/// The protocol in a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Protocol {
    /// 1
    Icmp,
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
            6 => Self::Tcp,
            17 => Self::Udp,
            other => Self::Other(other),
        }
    }

    /// The assigned number.
    pub const fn number(self) -> u8 {
        match self {
            Self::Icmp => 1,
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
    #[inline]
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
        if !Sum::new().bytes(header).is_valid() {
            return Err(Malformed::Checksum);
        }
        Ok(Self { header })
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

/// A header to send: no options, never fragmented.
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
    /// Writes [`IPV4_HEADER_BYTES`] bytes with their checksum.
    #[inline]
    pub fn emit(&self, bytes: &mut [u8]) {
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
        put_u16(header, 6, DONT_FRAGMENT);
        header[8] = self.ttl;
        header[9] = self.protocol.number();
        put(header, 12, self.src.octets());
        put(header, 16, self.dst.octets());
        let checksum = Sum::new().bytes(header).checksum();
        put_u16(header, 10, checksum);
    }
}
