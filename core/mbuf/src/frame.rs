//! What crosses the border between a network stack and a driver.
//!
//! A driver translates these few facts to its device's words: checksum start and
//! offset are what virtio-net, e1000 and igb all ask for.

use crate::chain::Chain;

/// A frame to transmit, with the work left to the device.
#[derive(Debug, Default)]
pub struct TxFrame {
    /// The frame from its Ethernet header on, without FCS.
    pub chain: Chain,
    /// A checksum to fill in.
    pub checksum: Option<ChecksumOffload>,
    /// A TCP segment to cut into pieces; implies `checksum`.
    pub segment: Option<SegmentOffload>,
    /// The second half of a VLAN tag (priority and identifier) to put in. All offsets are those
    /// without it.
    pub tag: Option<u16>,
}

/// "Sum from `start` to the end of the frame and store the complement at `start +
/// offset`", where the sum of the pseudo header already stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ChecksumOffload {
    /// First byte summed, from the start of the frame.
    pub start: u16,
    /// Where the checksum field lies, from `start`.
    pub offset: u16,
}

/// "Cut the payload into pieces of `mss` bytes and give each a copy of the headers."
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SegmentOffload {
    /// Payload bytes of each piece.
    pub mss: u16,
    /// Bytes of all headers, Ethernet to TCP.
    pub header_len: u16,
    /// The network protocol in front of TCP.
    pub kind: SegmentKind,
}

/// The network protocol of a frame to be segmented.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SegmentKind {
    /// TCP over IPv4.
    Tcp4,
    /// TCP over IPv6.
    Tcp6,
}

/// A received frame, with what the device already knows.
#[derive(Debug, Default)]
pub struct RxFrame {
    /// The frame from its Ethernet header on, without FCS.
    pub chain: Chain,
    /// What is known of its transport checksum.
    pub checksum: Checksum,
    /// Set if the device joined several TCP segments into this frame.
    pub coalesced: Option<Coalesced>,
    /// The second half of the VLAN tag that the device took out.
    pub tag: Option<u16>,
}

/// What is known of a received frame's transport checksum.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Checksum {
    /// Nothing; the stack must verify it.
    #[default]
    Unknown,
    /// The device found it correct.
    Verified,
    /// Never computed: the frame comes from a neighbour on the same machine and its field
    /// holds the pseudo-header sum only (virtio-net's `NEEDS_CSUM`).
    Partial(ChecksumOffload),
}

/// How a device joined segments.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Coalesced {
    /// Payload bytes of each original segment, zero if unknown.
    pub mss: u16,
}
