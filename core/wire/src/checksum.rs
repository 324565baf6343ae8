//! The Internet checksum (RFC 1071), in pieces.
//!
//! The ones'-complement sum does not care about byte order or grouping, so it is taken
//! over eight native bytes at a time with end-around carry and swapped once at the end.

use core::net::{Ipv4Addr, Ipv6Addr};

use crate::bytes::array;
use crate::ipv4::Protocol;

/// A ones'-complement sum of bytes in order, from which a checksum is made.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Sum {
    /// Of native-endian words of the bytes as they lie in memory.
    words: u64,
    /// An odd number of bytes came so far, so the next byte is the second of a pair.
    is_odd: bool,
}

#[inline]
fn add_carry(sum: u64, word: u64) -> u64 {
    let (sum, carry) = sum.overflowing_add(word);
    sum + u64::from(carry)
}

/// The sum of `bytes` as if they started at an even place.
#[inline]
fn sum_of(bytes: &[u8]) -> u64 {
    let mut sum = 0;
    let (blocks, mut rest) = bytes.as_chunks::<32>();
    for block in blocks {
        for word in 0..4 {
            sum = add_carry(sum, u64::from_ne_bytes(array(block, word * 8)));
        }
    }
    while let Some((word, tail)) = rest.split_first_chunk::<8>() {
        sum = add_carry(sum, u64::from_ne_bytes(*word));
        rest = tail;
    }
    if let Some((word, tail)) = rest.split_first_chunk::<4>() {
        sum = add_carry(sum, u64::from(u32::from_ne_bytes(*word)));
        rest = tail;
    }
    if let Some((pair, tail)) = rest.split_first_chunk::<2>() {
        sum = add_carry(sum, u64::from(u16::from_ne_bytes(*pair)));
        rest = tail;
    }
    match rest {
        [last] => add_carry(sum, u64::from(u16::from_ne_bytes([*last, 0]))),
        _ => sum,
    }
}

#[inline]
fn fold(sum: u64) -> u16 {
    let (half, carry) = (sum as u32).overflowing_add((sum >> 32) as u32);
    let half = half + u32::from(carry);
    // The lower half of this sum is that of both quarters, whose carry ends around in the upper.
    (half.wrapping_add(half.rotate_left(16)) >> 16) as u16
}

impl Sum {
    /// Of nothing.
    pub const fn new() -> Self {
        Self {
            words: 0,
            is_odd: false,
        }
    }

    /// Of the pseudo header that TCP and UDP over IPv4 are summed with; `bytes` is the
    /// length of transport header and payload.
    #[inline]
    pub fn pseudo_v4(src: Ipv4Addr, dst: Ipv4Addr, protocol: Protocol, bytes: u32) -> Self {
        let addresses = u64::from(u32::from_ne_bytes(src.octets()))
            + u64::from(u32::from_ne_bytes(dst.octets()));
        let rest = u64::from(u32::from(protocol.number()).to_be()) + u64::from(bytes.to_be());
        Self {
            words: addresses + rest,
            is_odd: false,
        }
    }

    /// Of the pseudo header of everything over IPv6 (RFC 8200 8.1); `bytes` is the length of
    /// the upper layer's header and payload, `number` its protocol.
    #[inline]
    pub fn pseudo_v6(src: Ipv6Addr, dst: Ipv6Addr, number: u8, bytes: u32) -> Self {
        Self::new()
            .bytes(&src.octets())
            .bytes(&dst.octets())
            .bytes(&bytes.to_be_bytes())
            .bytes(&[0, 0, 0, number])
    }

    /// Of twenty bytes, as nearly all IPv4 headers have.
    #[inline]
    pub fn of_twenty(bytes: &[u8; 20]) -> Self {
        let word = |at| u64::from_ne_bytes(array(bytes, at));
        let last = u64::from(u32::from_ne_bytes(array(bytes, 16)));
        Self {
            words: add_carry(add_carry(word(0), word(8)), last),
            is_odd: false,
        }
    }

    /// With more bytes at the end.
    #[inline]
    #[must_use]
    pub fn bytes(self, bytes: &[u8]) -> Self {
        let mut sum = sum_of(bytes);
        if self.is_odd {
            sum = u64::from(fold(sum).swap_bytes());
        }
        Self {
            words: add_carry(self.words, sum),
            is_odd: self.is_odd ^ (bytes.len() % 2 == 1),
        }
    }

    /// With a 16-bit word more, after an even number of bytes.
    #[inline]
    #[must_use]
    pub fn word(self, word: u16) -> Self {
        debug_assert!(!self.is_odd);
        Self {
            words: add_carry(self.words, u64::from(word.to_be())),
            ..self
        }
    }

    /// The folded sum itself, in host order: what stands in a checksum field that a
    /// device completes.
    #[inline]
    pub fn partial(self) -> u16 {
        u16::from_be(fold(self.words))
    }

    /// The checksum, in host order.
    #[inline]
    pub fn checksum(self) -> u16 {
        !self.partial()
    }

    /// Whether bytes that include their checksum sum up.
    #[inline]
    pub fn is_valid(self) -> bool {
        self.partial() == 0xffff
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reference(bytes: &[u8]) -> u16 {
        let sum: u32 = bytes
            .chunks(2)
            .map(|pair| u32::from(pair[0]) << 8 | u32::from(*pair.get(1).unwrap_or(&0)))
            .sum();
        let sum = (sum & 0xffff) + (sum >> 16);
        !(((sum & 0xffff) + (sum >> 16)) as u16)
    }

    #[test]
    fn any_cut_gives_the_sum_of_the_whole() {
        let bytes: [u8; 201] = core::array::from_fn(|i| (i * 37 + i / 7) as u8 | 0x80);
        for len in 0..bytes.len() {
            for cut in 0..=len {
                let sum = Sum::new().bytes(&bytes[..cut]).bytes(&bytes[cut..len]);
                assert_eq!(sum.checksum(), reference(&bytes[..len]), "{cut} of {len}");
            }
        }
    }

    #[test]
    fn a_sum_of_ones_does_not_lose_a_carry() {
        assert_eq!(Sum::new().bytes(&[0xff; 64]).checksum(), 0);
    }
}
