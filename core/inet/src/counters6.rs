//! What Linux counts of IPv6 in /proc/net/snmp6, by the same names (RFC 4293, RFC 4113).
//!
//! These stand beside `counters`: a dropped packet has its precise reason there and its
//! well-known name here.

use crate::counters::DropReason;

probes::counters! {
    /// A line of /proc/net/snmp6.
    pub enum Snmp6 => Snmp6Counts {
        /// Packets received, faulty ones included.
        InReceives = "Ip6InReceives",
        /// Dropped for their headers.
        InHdrErrors = "Ip6InHdrErrors",
        /// Dropped for their addresses.
        InAddrErrors = "Ip6InAddrErrors",
        /// Dropped for their protocol.
        InUnknownProtos = "Ip6InUnknownProtos",
        /// Dropped because the frame was too short.
        InTruncatedPkts = "Ip6InTruncatedPkts",
        /// Dropped though there was nothing wrong with them.
        InDiscards = "Ip6InDiscards",
        /// Handed to a transport.
        InDelivers = "Ip6InDelivers",
        /// Packets that we made.
        OutRequests = "Ip6OutRequests",
        /// Not sent though there was a way.
        OutDiscards = "Ip6OutDiscards",
        /// Not sent for lack of a route.
        OutNoRoutes = "Ip6OutNoRoutes",
        /// Packets given up for lack of pieces.
        ReasmTimeout = "Ip6ReasmTimeout",
        /// Pieces received.
        ReasmReqds = "Ip6ReasmReqds",
        /// Packets put together.
        ReasmOks = "Ip6ReasmOKs",
        /// Packets and pieces given up, for whatever reason.
        ReasmFails = "Ip6ReasmFails",
        /// Packets that were cut.
        FragOks = "Ip6FragOKs",
        /// Packets that could not be cut.
        FragFails = "Ip6FragFails",
        /// Pieces sent.
        FragCreates = "Ip6FragCreates",
        /// Multicast packets received.
        InMcastPkts = "Ip6InMcastPkts",
        /// Multicast packets sent.
        OutMcastPkts = "Ip6OutMcastPkts",
        /// Messages received, faulty ones included.
        IcmpInMsgs = "Icmp6InMsgs",
        /// Messages with a fault of their own.
        IcmpInErrors = "Icmp6InErrors",
        /// Messages sent.
        IcmpOutMsgs = "Icmp6OutMsgs",
        /// Messages not sent.
        IcmpOutErrors = "Icmp6OutErrors",
        /// Messages with a wrong checksum.
        IcmpInCsumErrors = "Icmp6InCsumErrors",
        /// Type 1 received.
        IcmpInDestUnreachs = "Icmp6InDestUnreachs",
        /// Type 2 received.
        IcmpInPktTooBigs = "Icmp6InPktTooBigs",
        /// Type 3 received.
        IcmpInTimeExcds = "Icmp6InTimeExcds",
        /// Type 4 received.
        IcmpInParmProblems = "Icmp6InParmProblems",
        /// Type 128 received.
        IcmpInEchos = "Icmp6InEchos",
        /// Type 129 received.
        IcmpInEchoReplies = "Icmp6InEchoReplies",
        /// Type 130 received.
        IcmpInGroupMembQueries = "Icmp6InGroupMembQueries",
        /// Type 131 received.
        IcmpInGroupMembResponses = "Icmp6InGroupMembResponses",
        /// Type 132 received.
        IcmpInGroupMembReductions = "Icmp6InGroupMembReductions",
        /// Type 133 received.
        IcmpInRouterSolicits = "Icmp6InRouterSolicits",
        /// Type 134 received.
        IcmpInRouterAdvertisements = "Icmp6InRouterAdvertisements",
        /// Type 135 received.
        IcmpInNeighborSolicits = "Icmp6InNeighborSolicits",
        /// Type 136 received.
        IcmpInNeighborAdvertisements = "Icmp6InNeighborAdvertisements",
        /// Type 137 received.
        IcmpInRedirects = "Icmp6InRedirects",
        /// Type 143 received.
        IcmpInMldV2Reports = "Icmp6InMLDv2Reports",
        /// Type 1 sent.
        IcmpOutDestUnreachs = "Icmp6OutDestUnreachs",
        /// Type 3 sent.
        IcmpOutTimeExcds = "Icmp6OutTimeExcds",
        /// Type 4 sent.
        IcmpOutParmProblems = "Icmp6OutParmProblems",
        /// Type 129 sent.
        IcmpOutEchoReplies = "Icmp6OutEchoReplies",
        /// Type 131 sent.
        IcmpOutGroupMembResponses = "Icmp6OutGroupMembResponses",
        /// Type 132 sent.
        IcmpOutGroupMembReductions = "Icmp6OutGroupMembReductions",
        /// Type 133 sent.
        IcmpOutRouterSolicits = "Icmp6OutRouterSolicits",
        /// Type 135 sent.
        IcmpOutNeighborSolicits = "Icmp6OutNeighborSolicits",
        /// Type 136 sent.
        IcmpOutNeighborAdvertisements = "Icmp6OutNeighborAdvertisements",
        /// Type 143 sent.
        IcmpOutMldV2Reports = "Icmp6OutMLDv2Reports",
        /// Datagrams received.
        UdpInDatagrams = "Udp6InDatagrams",
        /// Datagrams for a port that nobody has.
        UdpNoPorts = "Udp6NoPorts",
        /// Datagrams dropped for another reason.
        UdpInErrors = "Udp6InErrors",
        /// Datagrams sent.
        UdpOutDatagrams = "Udp6OutDatagrams",
    }
}

impl Snmp6 {
    /// The counter of received messages of a type.
    pub(crate) const fn icmp_in(kind: u8) -> Option<Self> {
        Some(match kind {
            1 => Self::IcmpInDestUnreachs,
            2 => Self::IcmpInPktTooBigs,
            3 => Self::IcmpInTimeExcds,
            4 => Self::IcmpInParmProblems,
            128 => Self::IcmpInEchos,
            129 => Self::IcmpInEchoReplies,
            130 => Self::IcmpInGroupMembQueries,
            131 => Self::IcmpInGroupMembResponses,
            132 => Self::IcmpInGroupMembReductions,
            133 => Self::IcmpInRouterSolicits,
            134 => Self::IcmpInRouterAdvertisements,
            135 => Self::IcmpInNeighborSolicits,
            136 => Self::IcmpInNeighborAdvertisements,
            137 => Self::IcmpInRedirects,
            143 => Self::IcmpInMldV2Reports,
            _ => return None,
        })
    }

    /// The counter of sent messages of a type.
    pub(crate) const fn icmp_out(kind: u8) -> Option<Self> {
        Some(match kind {
            1 => Self::IcmpOutDestUnreachs,
            3 => Self::IcmpOutTimeExcds,
            4 => Self::IcmpOutParmProblems,
            129 => Self::IcmpOutEchoReplies,
            131 => Self::IcmpOutGroupMembResponses,
            132 => Self::IcmpOutGroupMembReductions,
            133 => Self::IcmpOutRouterSolicits,
            135 => Self::IcmpOutNeighborSolicits,
            136 => Self::IcmpOutNeighborAdvertisements,
            143 => Self::IcmpOutMldV2Reports,
            _ => return None,
        })
    }

    /// The counter of IP's own drops; `None` for those of transports and others.
    pub(crate) const fn of_drop(reason: DropReason) -> Option<Self> {
        match reason {
            DropReason::Malformed | DropReason::BadExtension => Some(Self::InHdrErrors),
            DropReason::Truncated => Some(Self::InTruncatedPkts),
            DropReason::WrongAddress | DropReason::BadSource | DropReason::NotMember => {
                Some(Self::InAddrErrors)
            }
            DropReason::UnknownProtocol => Some(Self::InUnknownProtos),
            DropReason::FragmentOverlap
            | DropReason::FragmentMalformed
            | DropReason::ReassemblyLimit => Some(Self::ReasmFails),
            DropReason::Ipv6Off | DropReason::NoBuffer => Some(Self::InDiscards),
            _ => None,
        }
    }
}
