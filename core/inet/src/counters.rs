//! What the stack counts: everything it drops, by reason, and what it does.

use crate::counters6::{Snmp6, Snmp6Counts};

probes::counters! {
    /// Why a packet or a segment went no further.
    pub enum DropReason => Drops {
        /// Shorter than its headers, or its lengths contradict each other.
        Malformed = "malformed",
        /// A checksum does not match.
        BadChecksum = "bad_checksum",
        /// The frame is for another station.
        NotForUs = "not_for_us",
        /// The packet's address is none of ours; we do not forward.
        WrongAddress = "wrong_address",
        /// No host can have such a source address.
        BadSource = "bad_source",
        /// We do not speak that protocol.
        UnknownProtocol = "unknown_protocol",
        /// No socket has the port.
        NoSocket = "no_socket",
        /// It would have waited, and packet memory is scarce.
        MemoryScarce = "memory_scarce",
        /// UDP: packet memory is tight, and the socket holds its share of it.
        UdpMemoryTight = "udp_memory_tight",
        /// TCP: the same, of bytes that arrived in order.
        TcpMemoryTight = "tcp_memory_tight",
        /// TCP: arrived out of order and was not kept, or no longer, while memory is tight.
        EarlyPruned = "tcp_early_pruned",
        /// The socket's filter did not want it.
        Filtered = "filtered",
        /// The socket's receive queue is full.
        QueueFull = "queue_full",
        /// No buffer for a packet to send.
        NoBuffer = "no_buffer",
        /// No route to the destination.
        NoRoute = "no_route",
        /// The next hop does not answer, or too many packets wait for it.
        NeighborUnresolved = "neighbor_unresolved",
        /// The packet is longer than what arrived of it.
        Truncated = "truncated",
        /// IPv6: an extension header is wrong, unknown, or one of too many.
        BadExtension = "bad_extension",
        /// IPv6 was not started on the port, or our address turned out to be taken.
        Ipv6Off = "ipv6_off",
        /// A segment has fewer hops left than its socket asks for.
        TooFar = "too_far",
        /// The packet is for a group that we have not joined.
        NotMember = "not_member",
        /// Too many fragments wait for their rest.
        ReassemblyLimit = "reassembly_limit",
        /// The rest of a packet did not come in time.
        ReassemblyTimeout = "reassembly_timeout",
        /// A fragment overlaps others or contradicts them (RFC 5722).
        FragmentOverlap = "fragment_overlap",
        /// A fragment's length or place cannot be, or its headers are not all in the first.
        FragmentMalformed = "fragment_malformed",
        /// Neighbour discovery: a message that breaks the rules of RFC 4861.
        BadDiscovery = "bad_discovery",
        /// Neighbour discovery: somebody else has an address of ours.
        DuplicateAddress = "duplicate_address",
        /// Neighbour discovery: we follow no redirects.
        RedirectIgnored = "redirect_ignored",
        /// Router announcements: more routes or addresses than we keep.
        AdvertLimit = "advert_limit",
        /// Group membership: a message that breaks the rules of RFC 3376 or RFC 3810.
        BadMembership = "bad_membership",
        /// An ICMP error was not sent because there were too many.
        IcmpLimited = "icmp_rate_limited",
        /// Connections are at work, and pings would take more than their share of time.
        EchoLimited = "icmp_echo_limited",
        /// The loopback queue is full.
        LoopbackFull = "loopback_full",
        /// TCP: entirely outside the window.
        OutOfWindow = "tcp_out_of_window",
        /// TCP: an old duplicate, by its timestamp (PAWS).
        OldTimestamp = "tcp_old_timestamp",
        /// TCP: acknowledges bytes never sent.
        BadAck = "tcp_bad_ack",
        /// TCP: the answer to a SYN echoes a clock that we did not send.
        BadEcho = "tcp_bad_echo",
        /// TCP: a SYN or RST that only an attacker would send so (RFC 5961).
        Suspicious = "tcp_suspicious",
        /// TCP: a SYN that may be an old duplicate, for a connection that is over.
        TimeWaitSyn = "tcp_time_wait_syn",
        /// TCP: a reset for a connection that is over (RFC 1337).
        TimeWaitReset = "tcp_time_wait_reset",
        /// TCP: for a connection that is over, its timestamp old or missing (PAWS).
        TimeWaitPaws = "tcp_time_wait_paws",
        /// TCP: anything else for a connection that is over.
        TimeWaitSegment = "tcp_time_wait_segment",
        /// TCP: nothing in the state calls for it.
        Unexpected = "tcp_unexpected",
        /// TCP: the listener's queue of finished connections is full.
        AcceptQueueFull = "tcp_accept_queue_full",
        /// TCP: the listener's queue of half-open connections is full, and cookies are off.
        SynQueueFull = "tcp_syn_queue_full",
        /// TCP: that queue is full and connections are at work, so that cookies for all would
        /// take more than their share of time.
        SynLimited = "tcp_syn_limited",
        /// TCP: a bare acknowledgement is no valid SYN cookie.
        BadCookie = "tcp_bad_cookie",
        /// TCP: more out-of-order pieces than we keep.
        ReorderLimit = "tcp_reorder_limit",
        /// TCP: no room for another socket.
        SocketLimit = "tcp_socket_limit",
        /// TCP: for a socket that is frozen while it is taken apart or put together.
        Frozen = "tcp_frozen",
        /// TCP: for a connection that has left this stack for another.
        Departed = "tcp_departed",
        /// TCP: data for a socket that the program has closed.
        DataAfterClose = "tcp_data_after_close",
    }
}

probes::counters! {
    /// What the stack did.
    pub enum Count => Counts {
        /// Frames received.
        FramesIn = "frames_in",
        /// Frames transmitted.
        FramesOut = "frames_out",
        /// Packets delivered over loopback.
        Loopback = "loopback",
        /// Bytes of frames received.
        BytesIn = "bytes_in",
        /// Bytes of frames transmitted, before the device cuts them.
        BytesOut = "bytes_out",
        /// Bytes of packets delivered over loopback.
        BytesLooped = "bytes_looped",
        /// ARP requests and replies received.
        ArpIn = "arp_in",
        /// ARP requests sent.
        ArpRequests = "arp_requests",
        /// ICMP messages received.
        IcmpIn = "icmp_in",
        /// Echo requests answered.
        EchoReplies = "echo_replies",
        /// ICMP errors sent.
        IcmpErrorsOut = "icmp_errors_out",
        /// Questions of neighbour discovery sent.
        NeighborSolicits = "neighbor_solicits",
        /// Router announcements taken in.
        RouterAdverts = "router_adverts",
        /// Group membership reports sent.
        MembershipReports = "membership_reports",
        /// Packets cut into fragments.
        Fragmented = "fragmented",
        /// Fragments sent.
        FragmentsOut = "fragments_out",
        /// Fragments received.
        FragmentsIn = "fragments_in",
        /// Packets put together from fragments.
        Reassembled = "reassembled",
        /// Paths found to be narrower than the link.
        PathsNarrowed = "paths_narrowed",
        /// Datagrams received.
        UdpIn = "udp_in",
        /// Datagrams sent.
        UdpOut = "udp_out",
        /// Segments received.
        SegmentsIn = "tcp_segments_in",
        /// Segments sent, before the device cuts them.
        SegmentsOut = "tcp_segments_out",
        /// Segments sent that carried nothing but an acknowledgement.
        PureAcksOut = "tcp_pure_acks_out",
        /// Times that packet memory became tight (TCPMemoryPressures).
        MemoryPressures = "memory_pressures",
        /// Segments sent again.
        Retransmits = "tcp_retransmits",
        /// SYNs sent again at once because the peer remembers an older connection.
        SynsHurried = "tcp_syns_hurried",
        /// Retransmission timeouts.
        Timeouts = "tcp_timeouts",
        /// Losses found by SACK and repaired without a timeout (Linux: TCPSackRecovery).
        SackRecoveries = "tcp_sack_recoveries",
        /// Losses found by duplicate acknowledgements (TCPRenoRecovery).
        RenoRecoveries = "tcp_reno_recoveries",
        /// Segments sent again in such a recovery (TCPFastRetrans).
        FastRetransmits = "tcp_fast_retransmits",
        /// Segments sent again after a timeout (TCPSlowStartRetrans).
        SlowStartRetransmits = "tcp_slow_start_retransmits",
        /// Segments sent again to probe the end of a flight.
        ProbeRetransmits = "tcp_probe_retransmits",
        /// Retransmissions that were lost in their turn (TCPLostRetransmit).
        RetransmitsLost = "tcp_retransmits_lost",
        /// Probes of the end of a flight (TCPLossProbes).
        LossProbes = "tcp_loss_probes",
        /// Losses that such a probe has repaired (TCPLossProbeRecovery).
        LossProbeRecoveries = "tcp_loss_probe_recoveries",
        /// Acknowledgements that something arrived behind what had left later (TCPSACKReorder).
        ReorderingsSeen = "tcp_reorderings_seen",
        /// Reports sent of bytes that arrived again (TCPDSACKOldSent).
        DuplicateSacksSent = "tcp_duplicate_sacks_sent",
        /// The same of bytes that had arrived out of order (TCPDSACKOfoSent).
        DuplicateSacksEarly = "tcp_duplicate_sacks_early",
        /// Reports that something arrived twice (TCPDSACKRecv).
        DuplicateSacks = "tcp_duplicate_sacks",
        /// Recoveries undone because all that was sent again arrived twice (TCPDSACKUndo).
        DuplicateSackUndos = "tcp_duplicate_sack_undos",
        /// Recoveries undone because an original has arrived (TCPFullUndo).
        FullUndos = "tcp_full_undos",
        /// Timeouts undone because an original has arrived (TCPSpuriousRTOs).
        SpuriousTimeouts = "tcp_spurious_timeouts",
        /// Segments that a congested router has marked (IpExt: InCEPkts).
        MarksIn = "tcp_marks_in",
        /// Windows shrunk because the peer saw a mark.
        MarkReductions = "tcp_mark_reductions",
        /// Peers that dropped what they had reported (TCPSACKReneging).
        SackReneging = "tcp_sack_reneging",
        /// Segments that arrived out of order.
        OutOfOrder = "tcp_out_of_order",
        /// Segments whose bytes had all arrived before.
        Duplicates = "tcp_duplicates",
        /// Probes of a closed window.
        WindowProbes = "tcp_window_probes",
        /// Keepalive probes.
        KeepaliveProbes = "tcp_keepalive_probes",
        /// Challenge acknowledgements (RFC 5961).
        ChallengeAcks = "tcp_challenge_acks",
        /// Resets sent.
        ResetsOut = "tcp_resets_out",
        /// Resets not sent because there were too many in this second.
        ResetsSkipped = "tcp_resets_skipped",
        /// Resets received and believed.
        ResetsIn = "tcp_resets_in",
        /// Of these, for connections that peers had half opened.
        EmbryonicResets = "tcp_embryonic_resets",
        /// Connections that we opened.
        ActiveOpens = "tcp_active_opens",
        /// Connections that peers opened.
        PassiveOpens = "tcp_passive_opens",
        /// Connections given up for lack of an answer.
        TimedOut = "tcp_timed_out",
        /// SYNs that wait for room in a listener's accept queue.
        SynsHeld = "tcp_syns_held",
        /// SYN cookies sent.
        CookiesSent = "tcp_cookies_sent",
        /// Connections made from a cookie.
        CookiesAccepted = "tcp_cookies_accepted",
        /// Connections that went through TIME_WAIT.
        TimeWaits = "tcp_time_waits",
        /// TIME_WAITs left out because both ends are on this host.
        TimeWaitsSkipped = "tcp_time_waits_skipped",
        /// TIME_WAITs that lasted to their end.
        TimeWaitsExpired = "tcp_time_waits_expired",
        /// TIME_WAITs ended early by a peer's new connection.
        TimeWaitsReused = "tcp_time_waits_reused",
        /// Of these, SYNs that were challenged first, and taken up when the answer came.
        TimeWaitsTakenUp = "tcp_time_waits_taken_up",
        /// TIME_WAITs ended early by a new connection of ours.
        TimeWaitsRecycled = "tcp_time_waits_recycled",
        /// TIME_WAITs ended early by a reset.
        TimeWaitsReset = "tcp_time_waits_reset",
        /// Acknowledgements sent for connections in TIME_WAIT.
        TimeWaitAcks = "tcp_time_wait_acks",
        /// Such acknowledgements left out because the last is a moment ago.
        TimeWaitAcksSkipped = "tcp_time_wait_acks_skipped",
        /// TIME_WAITs ended early because there were too many.
        TimeWaitsEvicted = "tcp_time_waits_evicted",
    }
}

probes::counters! {
    /// Why we sent a reset, by the state that it was sent from.
    pub enum ResetReason => Resets {
        /// No socket has the port, and no connection the name.
        NoSocket = "TCPS_CLOSED-No_socket",
        /// An acknowledgement to a listener that has sent nothing to acknowledge.
        ListenerAck = "TCPS_LISTEN-Bad_ack",
        /// An acknowledgement to a listener is not that of a cookie.
        BadCookie = "TCPS_LISTEN-Bad_cookie",
        /// The listener is gone before its connection was accepted.
        ListenerClosed = "TCPS_LISTEN-Closed",
        /// The answer to our SYN acknowledges something else: the peer remembers an older
        /// connection of this name.
        BadSeq = "TCPS_SYN_SENT-Bad_seq",
        /// The answer to our SYN echoes a clock that we did not send.
        BadEcho = "TCPS_SYN_SENT-Bad_echo",
        /// The answer to our SYN-ACK acknowledges something else.
        BadAck = "TCPS_SYN_RCVD-Bad_ack",
        /// The program has closed with bytes unread (RFC 2525 2.17).
        Unread = "CLOSE-Unread_data",
        /// The program has closed with a linger time of zero.
        LingerZero = "CLOSE-Linger_zero",
        /// Too many connections live on after their program.
        OrphanLimit = "CLOSE-Too_many_orphans",
        /// The program asked for it.
        Aborted = "CLOSE-Aborted",
        /// Bytes came after the program has closed.
        DataAfterClose = "TCPS_FIN_WAIT-Data_after_close",
        /// The peer did not answer.
        TimedOut = "TIMER-No_answer",
    }
}

/// All counters of a stack.
#[derive(Clone, Debug, Default)]
pub struct Stats {
    /// Dropped, by reason.
    pub drops: Drops,
    /// Resets sent, by reason.
    pub resets: Resets,
    /// Done.
    pub counts: Counts,
    /// IPv6 by the names that Linux has for them.
    pub snmp6: Snmp6Counts,
}

impl Stats {
    /// Adds another stack's.
    pub fn add(&mut self, other: &Self) {
        for &why in DropReason::ALL {
            self.drops.add(why, other.drops.get(why));
        }
        for &why in ResetReason::ALL {
            self.resets.add(why, other.resets.get(why));
        }
        for &what in Count::ALL {
            self.counts.add(what, other.counts.get(what));
        }
        for &what in Snmp6::ALL {
            self.snmp6.add(what, other.snmp6.get(what));
        }
    }
}
