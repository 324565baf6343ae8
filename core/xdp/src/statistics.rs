//! What a program is told (`struct xdp_statistics`).

/// What went wrong since the socket was made.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Statistics {
    /// Frames that no chunk has room for, or that came where no ring is.
    pub rx_dropped: u64,
    /// Addresses in the fill ring that are none; each cost the frame that it was taken for.
    pub rx_invalid_descs: u64,
    /// Entries of the tx ring that are no frames.
    pub tx_invalid_descs: u64,
    /// Frames that found the rx ring full.
    pub rx_ring_full: u64,
    /// Frames that found the fill ring empty.
    pub rx_fill_ring_empty_descs: u64,
    /// Calls that found the tx ring empty.
    pub tx_ring_empty_descs: u64,
}

/// In Linux' order, by its names.
const NAMES: [&str; 6] = [
    "rx_dropped",
    "rx_invalid_descs",
    "tx_invalid_descs",
    "rx_ring_full",
    "rx_fill_ring_empty_descs",
    "tx_ring_empty_descs",
];

impl Statistics {
    /// The words with their names.
    pub fn named(&self) -> impl Iterator<Item = (&'static str, u64)> {
        NAMES.into_iter().zip(self.words())
    }

    /// The words in Linux' order.
    pub fn words(&self) -> [u64; 6] {
        [
            self.rx_dropped,
            self.rx_invalid_descs,
            self.tx_invalid_descs,
            self.rx_ring_full,
            self.rx_fill_ring_empty_descs,
            self.tx_ring_empty_descs,
        ]
    }
}
