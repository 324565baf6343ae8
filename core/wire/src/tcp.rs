//! TCP headers (RFC 9293), and arithmetic on sequence numbers.

use core::ops::{Add, AddAssign, Sub};

use crate::bytes::{put_u16, put_u32, u8_at, u16_at, u32_at};
use crate::tcp_options::TIMESTAMPS_BYTES;
use crate::{Malformed, TcpOptions};

/// Bytes of a header without options.
pub const TCP_HEADER_BYTES: usize = 20;
/// Bytes of the longest header.
pub const TCP_HEADER_BYTES_MAX: usize = 60;

/// A sequence number: a place in a stream modulo 2^32.
///
/// Order is defined between numbers less than 2^31 apart, so it is not `Ord`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Seq(pub u32);

impl Seq {
    /// Whether `self` lies before `other`.
    #[inline]
    pub const fn before(self, other: Self) -> bool {
        (self.0.wrapping_sub(other.0) as i32) < 0
    }

    /// Whether `self` lies behind `other`.
    #[inline]
    pub const fn after(self, other: Self) -> bool {
        other.before(self)
    }

    /// Whether `self` lies in `[start, start + len)`.
    #[inline]
    pub const fn is_within(self, start: Self, len: u32) -> bool {
        self.0.wrapping_sub(start.0) < len
    }

    /// The later of two.
    #[inline]
    #[must_use]
    pub const fn max(self, other: Self) -> Self {
        if self.before(other) { other } else { self }
    }

    /// The earlier of two.
    #[inline]
    #[must_use]
    pub const fn min(self, other: Self) -> Self {
        if self.before(other) { self } else { other }
    }

    /// Bytes from `earlier` to here; zero if it lies behind.
    #[inline]
    pub const fn since(self, earlier: Self) -> u32 {
        if self.before(earlier) {
            0
        } else {
            self.0.wrapping_sub(earlier.0)
        }
    }
}

impl Add<u32> for Seq {
    type Output = Self;
    #[inline]
    fn add(self, bytes: u32) -> Self {
        Self(self.0.wrapping_add(bytes))
    }
}

impl AddAssign<u32> for Seq {
    #[inline]
    fn add_assign(&mut self, bytes: u32) {
        *self = *self + bytes;
    }
}

impl Sub<u32> for Seq {
    type Output = Self;
    #[inline]
    fn sub(self, bytes: u32) -> Self {
        Self(self.0.wrapping_sub(bytes))
    }
}

/// The control bits, as they lie in the header.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct TcpFlags(pub u8);

impl TcpFlags {
    /// No more bytes from the sender.
    pub const FIN: Self = Self(0x01);
    /// Synchronize sequence numbers.
    pub const SYN: Self = Self(0x02);
    /// Reset the connection.
    pub const RST: Self = Self(0x04);
    /// Deliver now.
    pub const PSH: Self = Self(0x08);
    /// The acknowledgement field counts.
    pub const ACK: Self = Self(0x10);
    /// The urgent pointer counts.
    pub const URG: Self = Self(0x20);
    /// The sender has received a mark of congestion (RFC 3168).
    pub const ECE: Self = Self(0x40);
    /// The sender has reduced its window for that.
    pub const CWR: Self = Self(0x80);

    /// Whether all bits of `other` are set.
    #[inline]
    pub const fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// The bits of both.
    #[inline]
    #[must_use]
    pub const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// A received header whose lengths and flags are legal; the caller verifies the checksum.
#[derive(Clone, Copy, Debug)]
pub struct TcpView<'a> {
    header: &'a [u8],
}

impl<'a> TcpView<'a> {
    /// Where the checksum lies.
    pub const CHECKSUM_OFFSET: u16 = 16;

    /// Checks the header at the start of `bytes`.
    #[inline]
    pub fn parse(bytes: &'a [u8]) -> Result<Self, Malformed> {
        if bytes.len() < TCP_HEADER_BYTES {
            return Err(Malformed::Truncated);
        }
        let header_len = usize::from(u8_at(bytes, 12) >> 4) * 4;
        if header_len < TCP_HEADER_BYTES {
            return Err(Malformed::Length);
        }
        let header = bytes.get(..header_len).ok_or(Malformed::Truncated)?;
        let view = Self { header };
        let flags = view.flags();
        let is_contradictory =
            flags.has(TcpFlags::SYN) && (flags.has(TcpFlags::FIN) || flags.has(TcpFlags::RST));
        if is_contradictory {
            Err(Malformed::Flags)
        } else {
            Ok(view)
        }
    }

    /// Bytes of the header, options included.
    #[inline]
    pub const fn header_len(&self) -> usize {
        self.header.len()
    }

    /// Sender's port.
    #[inline]
    pub fn src_port(&self) -> u16 {
        u16_at(self.header, 0)
    }

    /// Receiver's port.
    #[inline]
    pub fn dst_port(&self) -> u16 {
        u16_at(self.header, 2)
    }

    /// Of the first byte, or of the SYN.
    #[inline]
    pub fn seq(&self) -> Seq {
        Seq(u32_at(self.header, 4))
    }

    /// Of the next byte expected; means something only with the ACK flag.
    #[inline]
    pub fn ack(&self) -> Seq {
        Seq(u32_at(self.header, 8))
    }

    /// Control bits.
    #[inline]
    pub fn flags(&self) -> TcpFlags {
        TcpFlags(u8_at(self.header, 13))
    }

    /// Bytes that the sender takes, unscaled.
    #[inline]
    pub fn window(&self) -> u16 {
        u16_at(self.header, 14)
    }

    /// The options; illegal ones are skipped.
    #[inline]
    pub fn options(&self) -> TcpOptions {
        TcpOptions::parse(self.header.get(TCP_HEADER_BYTES..).unwrap_or_default())
    }
}

/// A header to send.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct TcpRepr {
    /// Sender's port.
    pub src_port: u16,
    /// Receiver's port.
    pub dst_port: u16,
    /// Of the first byte, or of the SYN.
    pub seq: Seq,
    /// Of the next byte expected; sent as zero without the ACK flag.
    pub ack: Seq,
    /// Control bits.
    pub flags: TcpFlags,
    /// Bytes that we take, scaled.
    pub window: u16,
    /// Options.
    pub options: TcpOptions,
}

impl TcpRepr {
    /// Bytes of the header, options included.
    #[inline]
    pub fn header_len(&self) -> usize {
        TCP_HEADER_BYTES + self.options.len()
    }

    /// Writes [`header_len`](Self::header_len) bytes with a checksum of zero; nothing if there
    /// is no room for them.
    #[inline]
    pub fn emit(&self, bytes: &mut [u8]) {
        let timestamps = self.options.only_timestamps();
        let options_len = match timestamps {
            Some(_) => TIMESTAMPS_BYTES,
            None => self.options.len_of_list(),
        };
        let Some((fixed, rest)) = bytes.split_first_chunk_mut::<TCP_HEADER_BYTES>() else {
            return;
        };
        let ack = match self.flags.has(TcpFlags::ACK) {
            true => self.ack.0,
            false => 0,
        };
        let words = ((TCP_HEADER_BYTES + options_len) / 4) as u16;
        put_u16(fixed, 0, self.src_port);
        put_u16(fixed, 2, self.dst_port);
        put_u32(fixed, 4, self.seq.0);
        put_u32(fixed, 8, ack);
        put_u16(fixed, 12, words << 12 | u16::from(self.flags.0));
        put_u16(fixed, 14, self.window);
        put_u32(fixed, 16, 0);
        match (timestamps, rest.first_chunk_mut()) {
            (Some(timestamps), Some(space)) => timestamps.emit(space),
            _ => {
                if let Some(options) = rest.get_mut(..options_len) {
                    self.options.emit(options);
                }
            }
        }
    }

    /// Completes the checksum field of an emitted header.
    #[inline]
    pub fn set_checksum(bytes: &mut [u8], checksum: u16) {
        put_u16(bytes, usize::from(TcpView::CHECKSUM_OFFSET), checksum);
    }
}
