//! The control half of a network card: rings, groups, filters.
//!
//! Frames move through one [`FramePort`](crate::FramePort) for each pair of queues, owned by one
//! CPU each. What the pairs share (filters, hashing, moderation) is here, is owned by the
//! control plane, and is never called on the way of a frame.

use alloc::vec::Vec;
use core::ops::Range;

use base::Duration;

/// Rings that share filters. Frames that pass a filter are spread over the rings by hash.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RingGroup {
    /// Which queue pairs; not empty.
    pub rings: Range<u16>,
    /// Unicast addresses that can be filtered for.
    pub filters: u16,
}

/// What a card is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NicShape {
    /// Its own address, for which it filters from the start, in group 0 if it has any.
    pub mac: [u8; 6],
    /// The largest payload of an Ethernet frame, in bytes.
    pub mtu: u16,
    /// Megabits a second.
    pub speed_mbps: u64,
    /// Receive groups; group 0 is the default and gets all broadcasts and multicasts.
    /// Empty for a card that knows no groups: one ring, one address.
    pub groups: Vec<RingGroup>,
    /// Whether rings can be polled with their interrupt masked.
    pub can_poll: bool,
}

/// How frames are spread over the rings of a group.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SpreadRule<'a> {
    /// The Toeplitz key.
    pub key: &'a [u8; 40],
    /// A ring, counted from the group's first, for each of 128 values of the hash's low bits.
    pub table: &'a [u16; 128],
    /// Whether IPv6 is hashed; frames without a hash go to the group's first ring.
    pub ipv6: bool,
    /// Whether TCP ports are hashed.
    pub tcp_ports: bool,
    /// Whether UDP ports are hashed; fragments never hash on ports.
    pub udp_ports: bool,
}

/// What promiscuous mode is set for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PromiscuousScope {
    /// Frames that no filter claims go to this group.
    Group(u16),
    /// The card has no groups.
    Card,
}

/// Why a card does not do what it was asked to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NicError {
    /// All filters of the group are taken.
    FiltersFull,
    /// It never can.
    Unsupported,
    /// It did not answer, or has failed.
    Failed,
}

/// What a card hears of the wire.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LinkState {
    /// Nobody at the other end.
    Down,
    /// Frames can go.
    Up {
        /// Megabits a second.
        mbps: u32,
        /// Both directions at once.
        is_duplex: bool,
    },
}

/// Which VLANs a card lets in. Frames without a tag, or with a priority only, come in
/// anyway.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum VlanFilter<'a> {
    /// All.
    All,
    /// These identifiers, each below 4096, and no others; a card may let more in.
    Only(&'a [u16]),
}

/// Which groups' frames a card lets in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MulticastFilter<'a> {
    /// All: the state at the start.
    All,
    /// These and no others; a card may let more in.
    Only(&'a [[u8; 6]]),
}

/// What a card counted since it was brought up, all rings together.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct CardCounters {
    /// Good frames that passed the filters.
    pub rx_frames: u64,
    /// Their bytes, with the FCS.
    pub rx_bytes: u64,
    /// Of them, multicasts.
    pub rx_multicast: u64,
    /// Of them, broadcasts.
    pub rx_broadcast: u64,
    /// Good frames that were sent.
    pub tx_frames: u64,
    /// Their bytes, with the FCS.
    pub tx_bytes: u64,
    /// Dropped: the card's own memory was full.
    pub rx_missed: u64,
    /// Dropped: a wrong FCS, or a bad symbol.
    pub rx_damaged: u64,
    /// Dropped: shorter or longer than Ethernet allows.
    pub rx_bad_length: u64,
    /// Not sent: collisions.
    pub tx_collided: u64,
}

/// The control half of a card. A call that fails changes nothing.
pub trait NicControl {
    /// What the card is; does not change.
    fn shape(&self) -> NicShape;

    /// Filters for an address in favour of a group.
    fn add_address(&mut self, group: u16, mac: [u8; 6]) -> Result<(), NicError>;

    /// No longer filters for an address that was added to the group.
    fn remove_address(&mut self, group: u16, mac: [u8; 6]);

    /// Takes frames that no filter claims, or no longer.
    fn set_promiscuous(&mut self, scope: PromiscuousScope, on: bool) -> Result<(), NicError>;

    /// Lets these groups in.
    fn set_multicast(&mut self, filter: MulticastFilter<'_>) -> Result<(), NicError>;

    /// Spreads frames over the rings of a group.
    fn spread(&mut self, group: u16, rule: &SpreadRule<'_>) -> Result<(), NicError>;

    /// Keeps a ring's interrupts at least so far apart.
    fn set_moderation(&mut self, ring: u16, spacing: Duration) -> Result<(), NicError>;

    /// Lets these VLANs in. A card without such a filter lets all in.
    fn set_vlans(&mut self, _filter: VlanFilter<'_>) -> Result<(), NicError> {
        Err(NicError::Unsupported)
    }

    /// The link's state now, of a card that says. Asks for a message at the next change.
    fn link(&mut self) -> Option<LinkState> {
        None
    }

    /// Answers what the card's own message announces beside news of the link: requests of its
    /// virtual functions. Does bounded work, and asks for the next message. Returns how many
    /// requests it has refused so far.
    fn attend(&mut self) -> u64 {
        0
    }

    /// What the card has counted, if it counts.
    fn counters(&mut self) -> Option<CardCounters> {
        None
    }

    /// The card was reset by the owner of a pair ([`Remedy::CardReset`](crate::Remedy)):
    /// everything that was set is set again.
    fn restore(&mut self) {}
}
