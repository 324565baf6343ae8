//! IPv6 headers (RFC 8200).

use core::net::Ipv6Addr;

use crate::Malformed;
use crate::bytes::{array, put, put_u16, put_u32, u8_at, u16_at};

/// Bytes of a fixed header.
pub const IPV6_HEADER_BYTES: usize = 40;

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
        Ipv6Addr::from(array::<16>(self.header, 8))
    }

    /// Receiver.
    pub fn dst(&self) -> Ipv6Addr {
        Ipv6Addr::from(array::<16>(self.header, 24))
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
}

impl Ipv6Repr {
    /// Writes [`IPV6_HEADER_BYTES`] bytes.
    pub fn emit(&self, bytes: &mut [u8]) {
        put_u32(bytes, 0, 6 << 28);
        put_u16(bytes, 4, self.payload_len);
        put(bytes, 6, [self.next_header, self.hop_limit]);
        put(bytes, 8, self.src.octets());
        put(bytes, 24, self.dst.octets());
    }
}
