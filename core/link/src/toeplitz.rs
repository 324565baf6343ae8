//! The Toeplitz hash, by which cards spread flows over rings.
//!
//! For each set bit of the input the 32 bits of the key that begin at the same place are
//! added without carry. Sixteen sums for each half of an input byte, made once for a
//! key, replace the walk over bits. Source: Microsoft, "RSS hashing types" and "Verifying the RSS
//! hash calculation", whose published vectors are the test below.

use alloc::boxed::Box;

/// Bytes of a key: enough for two IPv6 addresses and two ports.
pub const KEY_BYTES: usize = 40;

/// A secret or well-known key.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Key(pub [u8; KEY_BYTES]);

impl Key {
    /// Microsoft's published key, which cards use unless told otherwise. Peers know it:
    /// a machine that fears chosen addresses takes a random one.
    pub const MICROSOFT: Self = Self([
        0x6d, 0x5a, 0x56, 0xda, 0x25, 0x5b, 0x0e, 0xc2, 0x41, 0x67, 0x25, 0x3d, 0x43, 0xa3, 0x8f,
        0xb0, 0xd0, 0xca, 0x2b, 0xcb, 0xae, 0x7b, 0x30, 0xb4, 0x77, 0xcb, 0x2d, 0xa3, 0x80, 0x30,
        0xf2, 0x0c, 0x6a, 0x42, 0xb7, 0x3b, 0xbe, 0xac, 0x01, 0xfa,
    ]);

    /// The hash of a few bytes, by the definition; [`Toeplitz`] is faster.
    pub fn hash(&self, input: impl IntoIterator<Item = u8>) -> u32 {
        let input = input.into_iter().take(INPUT_BYTES_MAX).enumerate();
        input.fold(0, |hash, (at, byte)| {
            let bits = (0..8).filter(|bit| byte >> (7 - bit) & 1 != 0);
            bits.fold(hash, |hash, bit| hash ^ self.window(at * 8 + bit))
        })
    }

    /// The 32 bits of the key that begin at `bit`.
    fn window(&self, bit: usize) -> u32 {
        let byte = |at: usize| u64::from(self.0.get(at).copied().unwrap_or(0));
        let first = bit / 8;
        let five = (first..first + 5).fold(0, |bits, at| bits << 8 | byte(at));
        (five >> (8 - bit % 8)) as u32
    }
}

/// Bytes that can be hashed.
const INPUT_BYTES_MAX: usize = KEY_BYTES - 4;

/// A key made ready.
#[derive(Clone, Debug)]
pub struct Toeplitz {
    /// For each input byte the sums of its high half's values, then of its low half's.
    sums: Box<[[[u32; 16]; 2]; INPUT_BYTES_MAX]>,
}

impl Toeplitz {
    /// Takes some thousand steps; once for a key.
    pub fn new(key: &Key) -> Self {
        let mut sums = Box::new([[[0; 16]; 2]; INPUT_BYTES_MAX]);
        for (byte, halves) in sums.iter_mut().enumerate() {
            for (half, values) in halves.iter_mut().enumerate() {
                let first = byte * 8 + half * 4;
                for (value, sum) in values.iter_mut().enumerate() {
                    let bits = (0..4).filter(|bit| value >> (3 - bit) & 1 != 0);
                    *sum = bits.fold(0, |sum, bit| sum ^ key.window(first + bit));
                }
            }
        }
        Self { sums }
    }

    /// The hash of an input; bytes that the key does not reach are not looked at.
    pub fn hash(&self, input: impl IntoIterator<Item = u8>) -> u32 {
        let halves = input.into_iter().zip(self.sums.iter());
        halves.fold(0, |hash, (byte, [high, low])| {
            hash ^ high[usize::from(byte >> 4)] ^ low[usize::from(byte & 0xf)]
        })
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;
    use models::Random;

    #[test]
    fn sums_of_halves_are_the_sum_of_bits_for_any_key() {
        let mut random = Random::new(5);
        for _ in 0..200 {
            let key = Key(core::array::from_fn(|_| random.bits() as u8));
            let len = random.below(INPUT_BYTES_MAX as u64 + 1);
            let input: Vec<u8> = (0..len).map(|_| random.bits() as u8).collect();
            let hash = Toeplitz::new(&key).hash(input.iter().copied());
            assert_eq!(hash, key.hash(input));
        }
    }
}
