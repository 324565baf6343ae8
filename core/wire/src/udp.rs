//! UDP headers (RFC 768).

use crate::Malformed;
use crate::bytes::{put_u16, u16_at};

/// Bytes of a header.
pub const UDP_HEADER_BYTES: usize = 8;

/// A received header whose length is right; the caller verifies the checksum.
#[derive(Clone, Copy, Debug)]
pub struct UdpView<'a> {
    header: &'a [u8; UDP_HEADER_BYTES],
}

impl<'a> UdpView<'a> {
    /// Where the checksum lies.
    pub const CHECKSUM_OFFSET: u16 = 6;

    /// Checks the header at the start of `bytes`; the datagram has `len` bytes at most.
    #[inline]
    pub fn parse(bytes: &'a [u8], len: usize) -> Result<Self, Malformed> {
        let header = bytes.first_chunk().ok_or(Malformed::Truncated)?;
        let view = Self { header };
        if view.len() < UDP_HEADER_BYTES || view.len() > len {
            return Err(Malformed::Length);
        }
        Ok(view)
    }

    /// Sender's port; zero if it wants no answer.
    pub fn src_port(&self) -> u16 {
        u16_at(self.header, 0)
    }

    /// Receiver's port.
    pub fn dst_port(&self) -> u16 {
        u16_at(self.header, 2)
    }

    /// Bytes of header and payload.
    pub fn len(&self) -> usize {
        usize::from(u16_at(self.header, 4))
    }

    /// Whether there is no payload.
    pub fn is_empty(&self) -> bool {
        self.len() <= UDP_HEADER_BYTES
    }

    /// Whether the sender has computed a checksum.
    pub fn has_checksum(&self) -> bool {
        u16_at(self.header, 6) != 0
    }
}

/// A header to send.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct UdpRepr {
    /// Sender's port.
    pub src_port: u16,
    /// Receiver's port.
    pub dst_port: u16,
    /// Bytes behind the header.
    pub payload_len: u16,
}

impl UdpRepr {
    /// Writes the header with `checksum` as it stands, complete or partial.
    #[inline]
    pub fn emit(&self, bytes: &mut [u8], checksum: u16) {
        put_u16(bytes, 0, self.src_port);
        put_u16(bytes, 2, self.dst_port);
        put_u16(
            bytes,
            4,
            self.payload_len.saturating_add(UDP_HEADER_BYTES as u16),
        );
        put_u16(bytes, 6, checksum);
    }
}
