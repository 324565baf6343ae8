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
        /// Received: the bandwidth limit is zero, or too much waits for it.
        RxBandwidth = "rx_bandwidth",
        /// Sent: the bandwidth limit is zero.
        TxBandwidth = "tx_bandwidth",
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
        /// Times that the interrupt was masked and polling began.
        PollStarts = "pollstarts",
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

/// What had frames taken from a ring.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Cause {
    /// The ring's interrupt.
    Interrupt,
    /// Its owner looked while the interrupt was masked.
    Poll,
}

impl RxCounts {
    /// Counts a chain that was taken from a ring; one without frames counts for nothing.
    #[inline]
    pub fn pulled(&mut self, frames: usize, bytes: u64, cause: Cause) {
        if frames == 0 {
            return;
        }
        let (by, bytes_by) = match cause {
            Cause::Interrupt => (RxCount::Interrupts, RxCount::InterruptBytes),
            Cause::Poll => (RxCount::Polls, RxCount::PollBytes),
        };
        self.add(RxCount::Packets, frames as u64);
        self.add(RxCount::Bytes, bytes);
        self.add(by, frames as u64);
        self.add(bytes_by, bytes);
        self.chain(frames);
    }

    /// Adds what another counted.
    pub fn add_all(&mut self, other: &Self) {
        for what in RxCount::ALL {
            self.add(*what, other.get(*what));
        }
    }

    /// Counts a chain by its length.
    fn chain(&mut self, frames: usize) {
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

/// A statistic by the name that `kstat` gives it.
pub type Kstat = (&'static str, u64);

/// A hardware receive lane: what a ring received, whoever it was for. `drops` are the
/// ring's owner's.
pub fn hardware_lane(ring: &RxCounts, drops: &Drops) -> [Kstat; 10] {
    let named = |what: RxCount| (what.name(), ring.get(what));
    [
        named(RxCount::Packets),
        named(RxCount::Bytes),
        named(RxCount::Interrupts),
        named(RxCount::InterruptBytes),
        named(RxCount::Polls),
        named(RxCount::PollBytes),
        ("rxsdrops", drops.get(DropReason::RingBacklog)),
        named(RxCount::ChainUnder10),
        named(RxCount::Chain10To50),
        named(RxCount::ChainOver50),
    ]
}

impl Counters {
    /// Adds what another ring counted for the same client.
    pub fn add(&mut self, other: &Self) {
        self.rx.add_all(&other.rx);
        for what in TxCount::ALL {
            self.tx.add(*what, other.tx.get(*what));
        }
        for what in DropReason::ALL {
            self.drops.add(*what, other.drops.get(*what));
        }
    }

    /// A software receive lane. What did not come from a neighbour came through a ring,
    /// which to the client is an interrupt.
    pub fn software_lane(&self) -> [Kstat; 7] {
        let get = |what| self.rx.get(what);
        let by_ring = |all, local| get(all) - get(local).min(get(all));
        [
            ("ipackets", get(RxCount::Packets)),
            ("rbytes", get(RxCount::Bytes)),
            ("local", get(RxCount::Local)),
            ("localbytes", get(RxCount::LocalBytes)),
            ("intrs", by_ring(RxCount::Packets, RxCount::Local)),
            ("intrbytes", by_ring(RxCount::Bytes, RxCount::LocalBytes)),
            ("rxsdrops", self.received_drops()),
        ]
    }

    /// A transmit lane.
    pub fn transmit_lane(&self) -> [Kstat; 6] {
        let get = |what| self.tx.get(what);
        [
            ("obytes", get(TxCount::Bytes)),
            ("opackets", get(TxCount::Packets)),
            ("oerrors", self.refused()),
            ("blockcnt", get(TxCount::Blocked)),
            ("unblockcnt", get(TxCount::Unblocked)),
            ("txsdrops", self.unsent_drops()),
        ]
    }

    /// A link as a whole: the columns of `dladm show-link -s`. An error is a frame that
    /// did not go further and was not somebody else's.
    pub fn link(&self) -> [Kstat; 6] {
        let no_buffer = self.drops.get(DropReason::NoBuffer);
        let forged: u64 = self.protection().iter().map(|(_, drops)| drops).sum();
        [
            ("ipackets", self.rx.get(RxCount::Packets)),
            ("rbytes", self.rx.get(RxCount::Bytes)),
            ("ierrors", self.received_drops() + no_buffer),
            ("opackets", self.tx.get(TxCount::Packets)),
            ("obytes", self.tx.get(TxCount::Bytes)),
            ("oerrors", self.refused() + self.unsent_drops() + forged),
        ]
    }

    /// What protection dropped.
    pub fn protection(&self) -> [Kstat; 4] {
        let reasons = [
            DropReason::MacSpoofed,
            DropReason::Restricted,
            DropReason::IpSpoofed,
            DropReason::DhcpSpoofed,
        ];
        reasons.map(|reason| (reason.name(), self.drops.get(reason)))
    }

    fn received_drops(&self) -> u64 {
        self.drops.get(DropReason::RingBacklog) + self.drops.get(DropReason::RxBandwidth)
    }

    fn unsent_drops(&self) -> u64 {
        self.drops.get(DropReason::TxBacklog) + self.drops.get(DropReason::TxBandwidth)
    }

    /// Frames that a client should not have sent.
    fn refused(&self) -> u64 {
        let reasons = [
            DropReason::Malformed,
            DropReason::TooLong,
            DropReason::ForeignVlan,
            DropReason::NoWire,
        ];
        reasons.iter().map(|reason| self.drops.get(*reason)).sum()
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;

    fn names(stats: &[Kstat]) -> Vec<&'static str> {
        stats.iter().map(|(name, _)| *name).collect()
    }

    #[test]
    fn lanes_show_the_well_known_names_in_their_order() {
        let counters = Counters::default();
        let hardware = hardware_lane(&counters.rx, &counters.drops);
        let expected = "ipackets rbytes intrs intrbytes polls pollbytes rxsdrops chainunder10 chain10to50 chainover50";
        assert_eq!(names(&hardware).join(" "), expected);
        let expected = "ipackets rbytes local localbytes intrs intrbytes rxsdrops";
        assert_eq!(names(&counters.software_lane()).join(" "), expected);
        let expected = "obytes opackets oerrors blockcnt unblockcnt txsdrops";
        assert_eq!(names(&counters.transmit_lane()).join(" "), expected);
        let expected = "macspoofed restricted ipspoofed dhcpspoofed";
        assert_eq!(names(&counters.protection()).join(" "), expected);
    }

    #[test]
    fn what_several_rings_counted_adds_up() {
        let mut one = Counters::default();
        one.rx.add(RxCount::Packets, 5);
        one.rx.add(RxCount::Local, 2);
        one.tx.count(TxCount::Blocked);
        one.drops.count(DropReason::TxBacklog);
        let mut both = one.clone();
        both.add(&one);
        assert_eq!(both.software_lane()[4], ("intrs", 6));
        assert_eq!(both.transmit_lane()[3], ("blockcnt", 2));
        assert_eq!(both.transmit_lane()[5], ("txsdrops", 2));
    }

    #[test]
    fn chains_are_counted_by_their_length() {
        let mut counts = RxCounts::default();
        [1, 9, 10, 50, 51]
            .into_iter()
            .for_each(|len| counts.chain(len));
        assert_eq!(counts.get(RxCount::ChainUnder10), 2);
        assert_eq!(counts.get(RxCount::Chain10To50), 2);
        assert_eq!(counts.get(RxCount::ChainOver50), 1);
    }
}
