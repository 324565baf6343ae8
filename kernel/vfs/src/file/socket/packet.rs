//! Names, options and companions of packet sockets (packet(7)).

use base::Duration;

/// Where a packet came from, or where a packet socket listens: `struct sockaddr_ll`.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct PacketAddress {
    /// The interface's number; 0 for any.
    pub interface: u32,
    /// The EtherType, or 3 for all; 0 for none.
    pub protocol: u16,
    /// `ARPHRD_*` of the interface.
    pub hardware_type: u16,
    /// `PACKET_HOST`, `PACKET_BROADCAST`, ...
    pub packet_type: u8,
    /// Bytes of the link address.
    pub station_len: u8,
    /// The link address.
    pub station: [u8; 8],
}

/// What `PACKET_ADD_MEMBERSHIP` asks for: `struct packet_mreq`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Membership {
    /// The interface's number.
    pub interface: u32,
    /// Which frames.
    pub kind: MembershipKind,
}

/// Frames beyond those that are for us.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MembershipKind {
    /// Those to one group.
    Group([u8; 6]),
    /// Those to all groups.
    AllGroups,
    /// All that pass.
    Promiscuous,
    /// Those to one more station.
    Unicast,
}

/// What `PACKET_STATISTICS` tells: packets since it was asked last.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct PacketStatistics {
    /// Those that the filter let pass, dropped ones too.
    pub packets: u32,
    /// Those that were dropped.
    pub drops: u32,
    /// How often the ring froze; `None` without a ring of version 3.
    pub freezes: Option<u32>,
}

/// What is told beside a received packet, where it was asked for.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct AncillaryData {
    /// When it came, since 1970, and in which unit that is told.
    pub stamp: Option<(Duration, StampUnit)>,
    /// What the link layer knows of it (PACKET_AUXDATA).
    pub auxiliary: Option<Auxiliary>,
}

/// The layout in which a time is told.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StampUnit {
    /// SO_TIMESTAMP: `struct timeval`.
    Microseconds,
    /// SO_TIMESTAMPNS: `struct timespec`.
    Nanoseconds,
}

/// `struct tpacket_auxdata`.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Auxiliary {
    /// `TP_STATUS_*`.
    pub status: u32,
    /// Bytes that it had.
    pub len: u32,
    /// Bytes that the filter kept.
    pub kept: u32,
    /// Where the network header starts.
    pub network: u16,
    /// A tag that a card took off: identifier and priority.
    pub tag: u16,
    /// That tag's EtherType.
    pub tag_type: u16,
}
