//! What the link layer counts, by the names that `kstat` and `dladm` show.
//!
//! Each ring's owner has counters of its own; who shows them adds them up.

probes::counters! {
    /// Why a frame went no further.
    pub enum DropReason => Drops {
        /// Shorter than an Ethernet header, or the reserved VLAN.
        Malformed = "malformed",
        /// For an address that no client has.
        NoClient = "no_client",
        /// No stream has bound the protocol.
        Unclaimed = "unknowns",
        /// A ring that cannot be polled holds its high mark.
        RingBacklog = "rxsdrops",
        /// What waits to be sent has reached its cap, or the caller wished so.
        TxBacklog = "txsdrops",
        /// Larger than the link's MTU.
        TooLong = "too_long",
        /// No buffer to rewrite a header or to copy a frame.
        NoBuffer = "norcvbuf",
        /// Tagged for a VLAN that the sender is not in.
        ForeignVlan = "foreign_vlan",
        /// The bandwidth limit is zero, or too much waits for it.
        Bandwidth = "bandwidth",
        /// The link went away while the frame waited.
        LinkGone = "link_gone",
        /// An etherstub leads to no wire.
        NoWire = "no_wire",
        /// Protection: the source address is not the client's.
        MacSpoofed = "macspoofed",
        /// Protection: a VLAN or protocol that a restricted link may not send.
        Restricted = "restricted",
        /// Protection: an IP, ARP or ND address that is not the client's.
        IpSpoofed = "ipspoofed",
        /// Protection: a DHCP identity that is not the client's.
        DhcpSpoofed = "dhcpspoofed",
    }
}

probes::counters! {
    /// Frames that a ring's owner took from the card or got from neighbours.
    pub enum RxCount => RxCounts {
        /// Frames.
        Packets = "ipackets",
        /// Bytes.
        Bytes = "rbytes",
        /// Frames that came by interrupt.
        Interrupts = "intrs",
        /// Their bytes.
        InterruptBytes = "intrbytes",
        /// Frames that were polled.
        Polls = "polls",
        /// Their bytes.
        PollBytes = "pollbytes",
        /// Frames from clients of the same lower link.
        Local = "local",
        /// Their bytes.
        LocalBytes = "localbytes",
        /// Chains of less than 10 frames.
        ChainUnder10 = "chainunder10",
        /// Chains of 10 to 50 frames.
        Chain10To50 = "chain10to50",
        /// Chains of more than 50 frames.
        ChainOver50 = "chainover50",
        /// Broadcasts.
        Broadcast = "brdcstrcv",
        /// Multicasts.
        Multicast = "multircv",
    }
}

probes::counters! {
    /// Frames that clients sent.
    pub enum TxCount => TxCounts {
        /// Frames.
        Packets = "opackets",
        /// Bytes.
        Bytes = "obytes",
        /// Times that a client was told to wait.
        Blocked = "blockcnt",
        /// Times that it was told to go on.
        Unblocked = "unblockcnt",
        /// Broadcasts.
        Broadcast = "brdcstxmt",
        /// Multicasts.
        Multicast = "multixmt",
    }
}

impl RxCounts {
    /// Counts a chain by its length.
    pub fn chain(&mut self, frames: usize) {
        self.count(match frames {
            0..10 => RxCount::ChainUnder10,
            10..=50 => RxCount::Chain10To50,
            _ => RxCount::ChainOver50,
        });
    }
}

/// All counters of one client at one ring.
#[derive(Clone, Debug, Default)]
pub struct Counters {
    /// Received.
    pub rx: RxCounts,
    /// Sent.
    pub tx: TxCounts,
    /// Dropped, by reason.
    pub drops: Drops,
}
