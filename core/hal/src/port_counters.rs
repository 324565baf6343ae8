//! What a pair of queues did and dropped, by reason.

/// Counts since the pair came up. A reason that a card does not know stays zero.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PortCounters {
    /// Frames received.
    pub rx_frames: u64,
    /// Bytes received.
    pub rx_bytes: u64,
    /// Frames sent; one that the card cuts counts once.
    pub tx_frames: u64,
    /// Bytes sent.
    pub tx_bytes: u64,
    /// Dropped by the card: the ring had no buffer.
    pub rx_ring_empty: u64,
    /// Dropped: damaged on the wire.
    pub rx_damaged: u64,
    /// Dropped: did not end in its buffer.
    pub rx_too_long: u64,
    /// Dropped: of a length that cannot be.
    pub rx_bad_length: u64,
    /// Dropped: the card announced more buffers than it filled.
    pub rx_incomplete: u64,
    /// Dropped: what the card says of the frame points outside of it.
    pub rx_bad_header: u64,
    /// Dropped: no buffer to replace the filled one.
    pub rx_no_memory: u64,
    /// Dropped: the card was reset before the frame was taken.
    pub rx_reset: u64,
    /// Dropped: sent by this station, and brought back by the card's switch.
    pub rx_own: u64,
    /// Given back: no descriptors were free. A frame that waits for some is tried more than once.
    pub tx_queue_full: u64,
    /// Dropped: the frame asks for what the card cannot do.
    pub tx_unsupported: u64,
    /// Given back: no buffer to copy headers to, or to gather many parts in.
    pub tx_no_memory: u64,
    /// Dropped: the queue stood still and was reset, or is broken.
    pub tx_reset: u64,
    /// How often the transmit queue was found standing still.
    pub tx_stalls: u64,
    /// 1 if the card broke a queue; nothing moves any more.
    pub queue_broken: u64,
}

impl PortCounters {
    /// Each with its name.
    pub fn named(&self) -> [(&'static str, u64); 19] {
        [
            ("rx_frames", self.rx_frames),
            ("rx_bytes", self.rx_bytes),
            ("tx_frames", self.tx_frames),
            ("tx_bytes", self.tx_bytes),
            ("rx_ring_empty", self.rx_ring_empty),
            ("rx_damaged", self.rx_damaged),
            ("rx_too_long", self.rx_too_long),
            ("rx_bad_length", self.rx_bad_length),
            ("rx_incomplete", self.rx_incomplete),
            ("rx_bad_header", self.rx_bad_header),
            ("rx_no_memory", self.rx_no_memory),
            ("rx_reset", self.rx_reset),
            ("rx_own", self.rx_own),
            ("tx_queue_full", self.tx_queue_full),
            ("tx_unsupported", self.tx_unsupported),
            ("tx_no_memory", self.tx_no_memory),
            ("tx_reset", self.tx_reset),
            ("tx_stalls", self.tx_stalls),
            ("queue_broken", self.queue_broken),
        ]
    }

    /// Received frames that went no further.
    pub fn rx_drops(&self) -> u64 {
        self.rx_ring_empty
            + self.rx_damaged
            + self.rx_too_long
            + self.rx_bad_length
            + self.rx_incomplete
            + self.rx_bad_header
            + self.rx_no_memory
            + self.rx_reset
            + self.rx_own
    }
}
