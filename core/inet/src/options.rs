//! What a program may set on a socket.

use core::net::IpAddr;

use base::Duration;

use crate::tcp::Algorithm;

/// Options of a socket; some matter to TCP only. Defaults are Linux's where it has one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Options {
    /// Whose socket it is: only sockets of one owner share a port for the load (`reuse_port`).
    pub owner: u32,
    /// By which interface its packets come and go.
    pub device: Device,
    /// Bind to a port whose connections are in TIME_WAIT, or share it with such sockets.
    pub reuse_address: bool,
    /// Share a port with others that set this too; arrivals are spread over them.
    pub reuse_port: bool,
    /// Allow datagrams to broadcast addresses.
    pub broadcast: bool,
    /// What is done with datagrams larger than their path.
    pub path_discovery: PathDiscovery,
    /// Largest packet to a host of IPv6, whatever its path takes (`IPV6_MTU`); zero for that.
    pub packet_bytes_v6: u16,
    /// Datagrams to hosts of IPv6 that do not fit a packet are refused, not cut (RFC 3542 11.2).
    pub is_whole_v6: bool,
    /// Datagrams to hosts of IPv4 go without a checksum.
    pub no_checksum: bool,
    /// Segments of IPv4 with fewer hops left are dropped (RFC 5082).
    pub min_ttl: u8,
    /// And those of IPv6.
    pub min_hop_count: u8,
    /// Failures of datagrams to hosts of IPv4 wait for the program.
    pub queue_failures_v4: bool,
    /// And of those to hosts of IPv6.
    pub queue_failures_v6: bool,
    /// Cut what is sent into datagrams of so many bytes; zero for one.
    pub segment_bytes: u16,
    /// Datagrams of one size that wait may be read at once.
    pub join_datagrams: bool,
    /// The shell has a filter for what arrives ([`Env::filter`](crate::Env::filter)).
    pub is_filtered: bool,
    /// A socket bound to `::` does not take IPv4 packets. If not set, it does.
    pub v6_only: bool,
    /// Send small segments at once instead of waiting for acknowledgements (Nagle).
    pub no_delay: bool,
    /// Hold back incomplete segments, at most 200 ms.
    pub cork: bool,
    /// Probe an idle peer.
    pub keepalive: bool,
    /// Time to live of packets sent to one host.
    pub ttl: u8,
    /// Of packets sent to groups.
    pub multicast_ttl: u8,
    /// Whether members on this host hear what the socket sends to groups.
    pub multicast_loop: bool,
    /// DSCP and ECN bits of packets sent.
    pub tos: u8,
    /// Keepalive probes without an answer before the connection dies.
    pub keep_count: u8,
    /// Largest segment to agree on, zero for what the path takes.
    pub max_segment: u16,
    /// Idle seconds before the first keepalive probe.
    pub keep_idle_secs: u16,
    /// Seconds between keepalive probes.
    pub keep_interval_secs: u16,
    /// What `close` does with unsent bytes: `None` sends them in the background, zero resets
    /// the connection; waiting longer is the shell's part.
    pub linger_secs: Option<u16>,
    /// How long sent bytes may stay unacknowledged, in milliseconds; zero for the default.
    pub user_timeout_ms: u32,
    /// Timeouts of a SYN without an answer before a connection is given up; zero for the
    /// system's number.
    pub syn_timeouts: u8,
    /// A listener's connections wait for their first bytes, for so many timeouts of its answer
    /// to the SYN.
    pub defer_timeouts: u8,
    /// Most bytes that the peer is offered; zero for what the buffer holds.
    pub window_clamp: u32,
    /// Bytes for which the program waits: a stream with fewer is not readable (Linux: `SO_RCVLOWAT`). One at least.
    pub receive_low_water: u32,
    /// How congestion is controlled.
    pub congestion: Algorithm,
    /// Most bytes queued for sending.
    pub send_buffer: u32,
    /// Most bytes queued for the program.
    pub recv_buffer: u32,
    /// The send buffer grows with what the path takes.
    pub is_send_tuned: bool,
    /// The receive buffer grows with what the program takes.
    pub is_recv_tuned: bool,
}

/// Which interface a socket is bound to (Linux: `SO_BINDTODEVICE`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Device {
    /// None: packets come and go by all.
    Any,
    /// That to ourselves.
    Loopback,
    /// The port.
    Port,
    /// That of another shard of the host, by its number: nothing comes or goes by it here.
    Other(u32),
}

impl Device {
    /// Whether packets to `own`, one of our addresses, come by it. An address of a port is reached
    /// by the port even where the packet does not leave us, as on Linux (`inet_iif`).
    pub(crate) fn hears(self, own: IpAddr) -> bool {
        match self {
            Self::Any => true,
            Self::Loopback => own.is_loopback(),
            Self::Port => !own.is_loopback(),
            Self::Other(_) => false,
        }
    }

    /// Whether packets to `dst`, which may be `local`, go by it.
    pub(crate) fn reaches(self, dst: IpAddr, local: bool) -> bool {
        self.hears(dst) || self == Self::Loopback && local
    }

    /// Whether two sockets can get the same packet.
    pub(crate) fn overlaps(self, other: Self) -> bool {
        self == Self::Any || other == Self::Any || self == other
    }
}

/// What a datagram socket makes of what is known of a path (Linux: `IP_MTU_DISCOVER`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PathDiscovery {
    /// What is larger than the path is cut, and the program does not hear of it.
    Never,
    /// It is cut.
    Want,
    /// It is refused.
    Always,
    /// What is larger than the link is refused, whatever the path takes.
    Probe,
    /// The same, and nobody is believed what the path takes.
    Interface,
    /// What is larger than the link is cut, and nobody is believed either.
    Omit,
}

impl PathDiscovery {
    /// Whether datagrams that are too large are refused.
    pub(crate) fn refuses(self) -> bool {
        matches!(self, Self::Always | Self::Probe | Self::Interface)
    }

    /// Whether it is the path that says how large they may be, not the link.
    pub(crate) fn looks_at_path(self) -> bool {
        matches!(self, Self::Never | Self::Want | Self::Always)
    }

    /// Whether messages about the path are believed.
    pub(crate) fn believes(self) -> bool {
        !matches!(self, Self::Interface | Self::Omit)
    }
}

/// Default of [`Options::send_buffer`] and [`Options::recv_buffer`] in bytes.
pub(crate) const BUFFER_BYTES: u32 = 256 * 1024;

impl Default for Options {
    fn default() -> Self {
        Self {
            owner: 0,
            device: Device::Any,
            reuse_address: false,
            reuse_port: false,
            broadcast: false,
            path_discovery: PathDiscovery::Want,
            packet_bytes_v6: 0,
            is_whole_v6: false,
            no_checksum: false,
            min_ttl: 0,
            min_hop_count: 0,
            queue_failures_v4: false,
            queue_failures_v6: false,
            segment_bytes: 0,
            join_datagrams: false,
            is_filtered: false,
            v6_only: false,
            no_delay: false,
            cork: false,
            keepalive: false,
            ttl: 64,
            multicast_ttl: 1,
            multicast_loop: true,
            tos: 0,
            keep_count: 9,
            max_segment: 0,
            keep_idle_secs: 7200,
            keep_interval_secs: 75,
            linger_secs: None,
            user_timeout_ms: 0,
            syn_timeouts: 0,
            defer_timeouts: 0,
            window_clamp: 0,
            receive_low_water: 1,
            congestion: Algorithm::Cubic,
            send_buffer: BUFFER_BYTES,
            recv_buffer: BUFFER_BYTES,
            is_send_tuned: true,
            is_recv_tuned: true,
        }
    }
}

impl Options {
    /// Most bytes that may wait for the program or be on their way to it.
    pub(crate) fn window_max(&self) -> u32 {
        match self.window_clamp {
            0 => self.recv_buffer,
            clamp => clamp.min(self.recv_buffer),
        }
    }

    /// Half of the largest buffer is the most that a program may wait for, so that its peer goes on meanwhile.
    pub(crate) fn limit_low_water(&mut self, recv_buffer_max: u32) {
        let buffer = match self.is_recv_tuned {
            true => recv_buffer_max,
            false => self.recv_buffer,
        };
        self.receive_low_water = self.receive_low_water.min(buffer / 2).max(1);
    }

    /// The options of a connection that goes on as `own`: whose it is and by which way it goes
    /// is its own, and buffers are as large as `buffers_max` (sending, receiving) at most.
    pub(crate) fn carried_to(&self, own: &Self, buffers_max: (u32, u32)) -> Self {
        let (send_max, recv_max) = buffers_max;
        Self {
            owner: own.owner,
            device: own.device,
            reuse_address: own.reuse_address,
            reuse_port: own.reuse_port,
            is_filtered: own.is_filtered,
            v6_only: own.v6_only,
            ttl: self.ttl.max(1),
            send_buffer: self.send_buffer.min(send_max.max(own.send_buffer)),
            recv_buffer: self.recv_buffer.min(recv_max.max(own.recv_buffer)),
            ..*self
        }
    }

    /// Time to the first keepalive probe.
    pub(crate) fn keep_idle(&self) -> Duration {
        Duration::from_secs(u64::from(self.keep_idle_secs.max(1)))
    }

    /// Time between keepalive probes.
    pub(crate) fn keep_interval(&self) -> Duration {
        Duration::from_secs(u64::from(self.keep_interval_secs.max(1)))
    }
}

/// Which direction `shutdown` closes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Shutdown {
    /// No more is received.
    Read,
    /// No more is sent: the peer sees the end of the stream.
    Write,
    /// Both.
    Both,
}
