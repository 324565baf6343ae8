//! Options of sockets, by meaning; `kernel/linux` knows their numbers and layouts.

use core::net::{IpAddr, Ipv4Addr};

use base::Duration;
use sync::Error;

pub use capture::RingRequest;
pub use xdp::{Statistics as XdpStatistics, UmemRequest};

use super::{InterfaceName, Membership, PacketStatistics, PeerCredentials};

/// Which option. The comment gives Linux's name.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OptionName {
    /// SO_DEBUG.
    Debug,
    /// SO_REUSEADDR.
    ReuseAddress,
    /// SO_REUSEPORT.
    ReusePort,
    /// SO_ERROR, read only; reading clears it.
    Error,
    /// SO_ACCEPTCONN, read only.
    Listening,
    /// SO_DONTROUTE.
    DontRoute,
    /// SO_BROADCAST.
    Broadcast,
    /// SO_SNDBUF, in bytes.
    SendBuffer,
    /// SO_SNDBUFFORCE, in bytes.
    SendBufferForced,
    /// SO_RCVBUF, in bytes.
    ReceiveBuffer,
    /// SO_RCVBUFFORCE, in bytes.
    ReceiveBufferForced,
    /// SO_RCVLOWAT, in bytes.
    ReceiveLowWater,
    /// SO_KEEPALIVE.
    KeepAlive,
    /// SO_OOBINLINE.
    OutOfBandInline,
    /// SO_PRIORITY.
    Priority,
    /// SO_LINGER.
    Linger,
    /// SO_PEEK_OFF, in bytes.
    PeekOffset,
    /// SO_PASSCRED.
    PassCredentials,
    /// SO_PEERCRED, read only.
    PeerCredentials,
    /// SO_RCVTIMEO.
    ReceiveTimeout,
    /// SO_SNDTIMEO.
    SendTimeout,
    /// SO_BINDTODEVICE.
    BindToDevice,
    /// SO_BINDTOIFINDEX.
    BindToInterface,
    /// SO_MARK.
    Mark,
    /// SO_BUSY_POLL.
    BusyPoll,
    /// SO_INCOMING_CPU.
    IncomingCpu,
    /// SO_NO_CHECK.
    NoCheck,
    /// SO_RXQ_OVFL.
    ReceiveQueueOverflow,
    /// SO_MEMINFO, read only.
    MemoryInfo,
    /// SO_COOKIE, read only.
    Cookie,
    /// SO_ZEROCOPY.
    ZeroCopy,
    /// SO_TIMESTAMP.
    Timestamp,
    /// SO_TIMESTAMPNS.
    TimestampNanos,
    /// IP_RECVORIGDSTADDR.
    ReceiveOriginalDestination,
    /// IP_MINTTL.
    MinTimeToLive,
    /// IP_TOS.
    TypeOfService,
    /// IP_TTL.
    TimeToLive,
    /// IP_PKTINFO.
    PacketInfo,
    /// IP_RECVERR.
    ReceiveErrors,
    /// IP_MTU_DISCOVER.
    MtuDiscovery,
    /// IP_FREEBIND.
    FreeBind,
    /// IP_BIND_ADDRESS_NO_PORT.
    BindAddressNoPort,
    /// IP_TRANSPARENT.
    Transparent,
    /// IP_MULTICAST_TTL.
    MulticastTimeToLive,
    /// IP_MULTICAST_LOOP.
    MulticastLoop,
    /// IP_MULTICAST_IF.
    MulticastInterface,
    /// IP_ADD_MEMBERSHIP, MCAST_JOIN_GROUP.
    JoinGroup,
    /// IP_DROP_MEMBERSHIP, MCAST_LEAVE_GROUP.
    LeaveGroup,
    /// IP_MTU, read only.
    Mtu,
    /// IP_RECVTTL.
    ReceiveTimeToLive,
    /// IP_RECVTOS.
    ReceiveTypeOfService,
    /// IPV6_V6ONLY.
    V6Only,
    /// IPV6_RECVPKTINFO.
    V6PacketInfo,
    /// IPV6_RECVORIGDSTADDR.
    V6ReceiveOriginalDestination,
    /// IPV6_MINHOPCOUNT.
    V6MinHopCount,
    /// IPV6_UNICAST_HOPS.
    V6HopLimit,
    /// IPV6_TCLASS.
    V6TrafficClass,
    /// IPV6_RECVERR.
    V6ReceiveErrors,
    /// IPV6_MTU_DISCOVER.
    V6MtuDiscovery,
    /// IPV6_MTU.
    V6Mtu,
    /// IPV6_DONTFRAG.
    V6DontFragment,
    /// IPV6_MULTICAST_IF.
    V6MulticastInterface,
    /// IPV6_MULTICAST_HOPS.
    V6MulticastHops,
    /// IPV6_MULTICAST_LOOP.
    V6MulticastLoop,
    /// IPV6_ADD_MEMBERSHIP, MCAST_JOIN_GROUP.
    V6JoinGroup,
    /// IPV6_DROP_MEMBERSHIP, MCAST_LEAVE_GROUP.
    V6LeaveGroup,
    /// IPV6_RECVHOPLIMIT.
    V6ReceiveHopLimit,
    /// IPV6_RECVTCLASS.
    V6ReceiveTrafficClass,
    /// TCP_NODELAY.
    NoDelay,
    /// TCP_MAXSEG, in bytes.
    MaxSegment,
    /// TCP_CORK.
    Cork,
    /// TCP_KEEPIDLE, in seconds.
    KeepIdle,
    /// TCP_KEEPINTVL, in seconds.
    KeepInterval,
    /// TCP_KEEPCNT.
    KeepCount,
    /// TCP_SYNCNT.
    SynCount,
    /// TCP_LINGER2, in seconds.
    FinTimeout,
    /// TCP_DEFER_ACCEPT, in seconds.
    DeferAccept,
    /// TCP_WINDOW_CLAMP, in bytes.
    WindowClamp,
    /// TCP_INFO, read only.
    TcpInfo,
    /// TCP_QUICKACK.
    QuickAck,
    /// TCP_CONGESTION.
    Congestion,
    /// TCP_USER_TIMEOUT, in milliseconds.
    UserTimeout,
    /// TCP_FASTOPEN.
    FastOpen,
    /// TCP_NOTSENT_LOWAT, in bytes.
    NotSentLowWater,
    /// TCP_REPAIR: whether the connection stands still; -1 to go on without asking the peer.
    Repair,
    /// TCP_REPAIR_QUEUE: which queue the next calls mean.
    RepairQueue,
    /// TCP_QUEUE_SEQ: where that queue ends.
    QueueSequence,
    /// TCP_REPAIR_OPTIONS, write only.
    RepairOptions,
    /// TCP_REPAIR_WINDOW.
    RepairWindow,
    /// TCP_TIMESTAMP: the connection's clock.
    TcpClock,
    /// UDP_CORK.
    UdpCork,
    /// UDP_SEGMENT, in bytes.
    UdpSegment,
    /// UDP_GRO.
    UdpJoin,
    /// ICMP_FILTER.
    IcmpFilter,
    /// ICMP6_FILTER.
    Icmp6Filter,
    /// IP_HDRINCL.
    HeaderIncluded,
    /// IPV6_HDRINCL.
    V6HeaderIncluded,
    /// IPV6_CHECKSUM: where a raw socket's checksum lies; negative for none.
    V6Checksum,
    /// PACKET_ADD_MEMBERSHIP.
    AddMembership,
    /// PACKET_DROP_MEMBERSHIP.
    DropMembership,
    /// PACKET_RX_RING.
    ReceiveRing,
    /// PACKET_STATISTICS, read only; reading clears it.
    PacketStatistics,
    /// PACKET_AUXDATA.
    Auxdata,
    /// PACKET_VERSION.
    RingVersion,
    /// PACKET_RESERVE, in bytes.
    RingReserve,
    /// PACKET_TIMESTAMP.
    PacketTimestamp,
    /// PACKET_IGNORE_OUTGOING.
    IgnoreOutgoing,
    /// NETLINK_ADD_MEMBERSHIP, a group's number.
    NetlinkJoin,
    /// NETLINK_DROP_MEMBERSHIP, a group's number.
    NetlinkLeave,
    /// NETLINK_LIST_MEMBERSHIPS, read only.
    NetlinkGroups,
    /// NETLINK_NO_ENOBUFS.
    NetlinkNoOverruns,
    /// NETLINK_CAP_ACK.
    NetlinkCapAck,
    /// NETLINK_EXT_ACK.
    NetlinkExtendedAck,
    /// NETLINK_GET_STRICT_CHK.
    NetlinkStrict,
    /// XDP_UMEM_REG.
    Umem,
    /// XDP_UMEM_FILL_RING, in entries.
    FillRing,
    /// XDP_UMEM_COMPLETION_RING, in entries.
    CompletionRing,
    /// XDP_RX_RING, in entries.
    XdpReceiveRing,
    /// XDP_TX_RING, in entries.
    XdpSendRing,
    /// XDP_MMAP_OFFSETS, read only.
    RingOffsets,
    /// XDP_STATISTICS, read only.
    XdpStatistics,
    /// XDP_OPTIONS, read only.
    XdpOptions,
    /// Whether a queue of several gets new flows; write only, and not Linux's.
    XdpNewFlows,
    /// The descriptor of a filter to be attached; write only, and not Linux's.
    XdpFilter,
}

impl OptionName {
    /// Whether only sockets of IPv6 have it.
    pub fn is_of_v6(self) -> bool {
        matches!(
            self,
            Self::V6Only
                | Self::V6PacketInfo
                | Self::V6ReceiveOriginalDestination
                | Self::V6MinHopCount
                | Self::V6HopLimit
                | Self::V6TrafficClass
                | Self::V6ReceiveErrors
                | Self::V6MtuDiscovery
                | Self::V6Mtu
                | Self::V6DontFragment
                | Self::V6MulticastInterface
                | Self::V6MulticastHops
                | Self::V6MulticastLoop
                | Self::V6JoinGroup
                | Self::V6LeaveGroup
                | Self::V6ReceiveHopLimit
                | Self::V6ReceiveTrafficClass
                | Self::Icmp6Filter
                | Self::V6HeaderIncluded
                | Self::V6Checksum
        )
    }
}

/// A multicast group, and the interface at which to hear it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct GroupMembership {
    /// The group's address; of [`OptionName::MulticastInterface`], unspecified.
    pub group: IpAddr,
    /// The interface's number; 0 for any.
    pub interface: u32,
    /// An address of the interface; unspecified for any.
    pub local: Ipv4Addr,
}

/// The value of an option. A number also answers for a flag.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum OptionValue {
    /// A C `int`.
    Number(i32),
    /// SO_LINGER: how long close waits; `None` when off.
    Linger(Option<Duration>),
    /// A time limit; `None` for no limit.
    Timeout(Option<Duration>),
    /// A process and its user.
    Credentials(PeerCredentials),
    /// SO_ERROR: what went wrong since it was asked last.
    PendingError(Option<Error>),
    /// A short name (TCP_CONGESTION, SO_BINDTODEVICE), filled up with zeros.
    Name([u8; 16]),
    /// The name of an interface, if there is one (SO_BINDTODEVICE).
    Device(Option<InterfaceName>),
    /// The state of a TCP connection.
    Tcp(TcpInfo),
    /// TCP_REPAIR_OPTIONS: numbers of options of a SYN, and what they say; zeros behind the last.
    RepairOptions([(u32, u32); REPAIR_OPTIONS_MAX]),
    /// TCP_REPAIR_WINDOW.
    RepairWindow(RepairWindow),
    /// PACKET_RX_RING.
    Ring(RingRequest),
    /// PACKET_ADD_MEMBERSHIP, PACKET_DROP_MEMBERSHIP.
    Membership(Membership),
    /// PACKET_STATISTICS.
    PacketStatistics(PacketStatistics),
    /// SO_COOKIE.
    Cookie(u64),
    /// A set of numbers up to 63.
    Bits(u64),
    /// A group.
    Group(GroupMembership),
    /// An address.
    Address(Ipv4Addr),
    /// Types of ICMPv6 messages, by bit (ICMP6_FILTER).
    Types([u32; 8]),
    /// What a socket holds.
    Memory(SocketMemory),
    /// XDP_UMEM_REG.
    Umem(UmemRequest),
    /// XDP_MMAP_OFFSETS: the same for all sockets.
    RingOffsets,
    /// XDP_STATISTICS.
    XdpStatistics(XdpStatistics),
}

impl From<bool> for OptionValue {
    fn from(on: bool) -> Self {
        Self::Number(i32::from(on))
    }
}

impl OptionValue {
    /// As a number; [`Error::Invalid`] for other kinds.
    pub fn number(self) -> Result<i32, Error> {
        match self {
            Self::Number(number) => Ok(number),
            _ => Err(Error::Invalid),
        }
    }

    /// As a flag: a number other than zero.
    pub fn flag(self) -> Result<bool, Error> {
        Ok(self.number()? != 0)
    }
}

/// Options of a SYN that one call may repair; there are four.
pub const REPAIR_OPTIONS_MAX: usize = 8;

/// `struct tcp_repair_window`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct RepairWindow {
    /// Sequence number of the segment that last changed the peer's window.
    pub send_wl1: u32,
    /// What the peer takes.
    pub send: u32,
    /// The most that it ever took.
    pub send_max: u32,
    /// What we have offered to take from `receive_from` on.
    pub receive: u32,
    /// What was expected next when we did.
    pub receive_from: u32,
}

/// What SO_MEMINFO tells, in bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct SocketMemory {
    /// Received and not read.
    pub received: u32,
    /// How much that may be.
    pub receive_buffer: u32,
    /// Gathered or queued and not sent.
    pub sending: u32,
    /// How much that may be.
    pub send_buffer: u32,
    /// Messages that found no room.
    pub drops: u32,
}

/// What TCP_INFO tells (the fields that programs and `ss` read).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct TcpInfo {
    /// The state's number in Linux (1 established, 10 listening ...).
    pub state: u8,
    /// Retransmissions of the oldest segment under way.
    pub retransmits: u8,
    /// Both ends use timestamps.
    pub has_timestamps: bool,
    /// Both ends use selective acknowledgements.
    pub has_sack: bool,
    /// Shifts of the peer's window and of ours.
    pub window_scales: (u8, u8),
    /// Retransmission timeout, in microseconds.
    pub rto_us: u32,
    /// Largest segment we send, in bytes.
    pub send_mss: u32,
    /// Largest segment we receive, in bytes.
    pub receive_mss: u32,
    /// Segments sent and not acknowledged; of a listener, connections that wait for an accept.
    pub unacked: u32,
    /// Segments acknowledged out of order; of a listener, how many connections may wait.
    pub selectively_acked: u32,
    /// Smoothed round-trip time, in microseconds.
    pub rtt_us: u32,
    /// Its variation, in microseconds.
    pub rtt_variation_us: u32,
    /// Congestion window, in segments.
    pub congestion_window: u32,
    /// Slow-start threshold, in segments.
    pub slow_start_threshold: u32,
    /// Segments sent again in all.
    pub total_retransmits: u32,
    /// Bytes that the peer acknowledged.
    pub bytes_acked: u64,
    /// Bytes received in order.
    pub bytes_received: u64,
    /// Bytes queued and never sent yet.
    pub not_sent_bytes: u32,
}
