//! What a stack knows of the NIC that it uses.

use wire::MacAddr;

/// A NIC, as a stack sees it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Port {
    /// Our station.
    pub mac: MacAddr,
    /// Largest IP packet, in bytes.
    pub mtu: u16,
    /// What the device does for us on transmission.
    pub offloads: Offloads,
}

/// Work that a device takes over.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Offloads {
    /// Completes the checksum of TCP and UDP.
    pub checksum: bool,
    /// Cuts TCP over IPv4 into segments; needs `checksum`.
    pub segment_v4: bool,
    /// Cuts TCP over IPv6 into segments; needs `checksum`.
    pub segment_v6: bool,
}
