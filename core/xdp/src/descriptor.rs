//! A frame in the UMEM (`struct xdp_desc`).

/// Bytes of a descriptor in a ring.
pub const DESCRIPTOR_BYTES: usize = 16;

/// Where a frame lies, and how long it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Descriptor {
    /// Its first byte, from the UMEM's.
    pub address: u64,
    /// Its bytes.
    pub len: u32,
    /// XDP_PKT_CONTD, XDP_TX_METADATA: none that we have.
    pub options: u32,
}

impl Descriptor {
    /// As it stands in a ring.
    pub fn from_bytes(bytes: [u8; DESCRIPTOR_BYTES]) -> Self {
        let [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p] = bytes;
        Self {
            address: u64::from_ne_bytes([a, b, c, d, e, f, g, h]),
            len: u32::from_ne_bytes([i, j, k, l]),
            options: u32::from_ne_bytes([m, n, o, p]),
        }
    }

    /// As it stands in a ring.
    pub fn to_bytes(self) -> [u8; DESCRIPTOR_BYTES] {
        let [a, b, c, d, e, f, g, h] = self.address.to_ne_bytes();
        let [i, j, k, l] = self.len.to_ne_bytes();
        let [m, n, o, p] = self.options.to_ne_bytes();
        [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p]
    }
}
