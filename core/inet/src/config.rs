//! What an administrator may choose about a stack, at its birth and later.
//!
//! All of it is one value, [`Config`]. A new one takes effect at once where it is asked for at
//! each use; the rest is adapted (`reconfigure`). Sockets keep the options that they were born
//! with. `docs/sysctl.md` has the names that Linux gives to the fields.
//!
//! Not here: what a program chooses for one socket (`options`).

use core::net::IpAddr;

use wire::TcpOptions;

use crate::ephemeral::PortRange;
use crate::memory::MemoryLimits;
use crate::options::Options;
use crate::tcp::{SynCookies, TimeWaitRules};

/// Limits and habits of one stack; defaults suit a machine with a few hundred MiB.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Config {
    /// Sockets, embryonic connections included. The one field that stays as it was at birth.
    pub sockets_max: usize,
    /// Connections in TIME_WAIT.
    pub time_waits_max: usize,
    /// Rules for them.
    pub time_wait: TimeWaitRules,
    /// Connections that live on after their program closed them.
    pub orphans_max: usize,
    /// Half-open connections of one listener before there are too many.
    pub half_open_max: usize,
    /// What it does then.
    pub syn_cookies: SynCookies,
    /// Where ephemeral ports come from (Linux: `ip_local_port_range`).
    pub ports: PortRange,
    /// Bytes that a connection's buffer for sending grows to by itself.
    pub send_buffer_max: u32,
    /// The same of its buffer for receiving.
    pub recv_buffer_max: u32,
    /// Bytes that all buffers together grow by.
    pub buffer_growth_max: usize,
    /// Packet memory that connections hold, on all stacks of the machine (Linux: `tcp_mem`).
    pub tcp_memory: MemoryLimits,
    /// The same of datagram sockets (`udp_mem`).
    pub udp_memory: MemoryLimits,
    /// Explicit congestion notification.
    pub ecn: Ecn,
    /// What we offer to TCP's peers and take from them.
    pub offers: Offers,
    /// How long we wait for them.
    pub retry_limits: RetryLimits,
    /// RFC 5961 7: at most so many challenge acknowledgements a second.
    pub challenges_per_second: u32,
    /// RFC 4443 2.4 (f): at most so many ICMP errors of both families a second. A limit that
    /// can be guessed tells an attacker which ports are open (CVE-2020-25705).
    pub icmp_errors_per_second: u32,
    /// Whether echo requests by IPv4 stay without an answer.
    pub ignores_echo: bool,
    /// The same by IPv6.
    pub ignores_echo_v6: bool,
    /// Hops that IPv4 packets may take whose socket does not say.
    pub hop_limit: u8,
    /// The same of IPv6 packets, and of all packets of IPv6 sockets.
    pub hop_limit_v6: u8,
    /// Packets to ourselves that wait for delivery.
    pub loopback_packets_max: usize,
    /// What TCP sockets begin with, but for their hops.
    pub stream: Options,
    /// What UDP sockets begin with, but for their hops.
    pub datagram: Options,
}

/// Whether connections use explicit congestion notification (RFC 3168).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Ecn {
    /// Never.
    Off,
    /// If the peer asks for it: Linux's default.
    #[default]
    Accept,
    /// We ask, too.
    Ask,
}

/// Extensions of TCP that new connections may agree on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Offers {
    /// Selective acknowledgements (RFC 2018).
    pub sack: bool,
    /// Timestamps (RFC 7323).
    pub timestamps: bool,
    /// Windows of more than 64 KiB (RFC 7323).
    pub window_scaling: bool,
}

impl Offers {
    /// What is left of a peer's options.
    pub(crate) fn among(&self, options: &TcpOptions) -> TcpOptions {
        TcpOptions {
            sack_permitted: options.sack_permitted && self.sack,
            timestamps: options.timestamps.filter(|_| self.timestamps),
            window_scale: options.window_scale.filter(|_| self.window_scaling),
            ..*options
        }
    }
}

/// How long a connection waits for a peer that does not answer: timeouts in a row, each
/// twice as long as the one before.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RetryLimits {
    /// Of an open connection; 15 are about as many minutes.
    pub timeouts: u8,
    /// Of one that we open.
    pub syn_timeouts: u8,
    /// Of one that the peer opens.
    pub syn_ack_timeouts: u8,
    /// Of one that its program has closed.
    pub orphan_timeouts: u8,
    /// Seconds that such a one waits for the peer to close, too.
    pub fin_wait_secs: u32,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            sockets_max: 1 << 20,
            time_waits_max: 16384,
            time_wait: TimeWaitRules::default(),
            orphans_max: 4096,
            half_open_max: 512,
            syn_cookies: SynCookies::WhenFull,
            ports: PortRange::default(),
            send_buffer_max: 6 << 20,
            recv_buffer_max: 6 << 20,
            buffer_growth_max: 32 << 20,
            tcp_memory: MemoryLimits::below(64 << 20),
            udp_memory: MemoryLimits::below(32 << 20),
            ecn: Ecn::default(),
            offers: Offers {
                sack: true,
                timestamps: true,
                window_scaling: true,
            },
            retry_limits: RetryLimits {
                timeouts: 15,
                syn_timeouts: 6,
                syn_ack_timeouts: 5,
                orphan_timeouts: 8,
                fin_wait_secs: 60,
            },
            challenges_per_second: 100,
            icmp_errors_per_second: 100,
            ignores_echo: false,
            ignores_echo_v6: false,
            hop_limit: 64,
            hop_limit_v6: 64,
            loopback_packets_max: 4096,
            stream: Options::default(),
            datagram: Options::default(),
        }
    }
}

impl Config {
    /// Hops for packets to `dst` whose socket does not say.
    pub(crate) fn hops_to(&self, dst: IpAddr) -> u8 {
        match dst {
            IpAddr::V4(_) => self.hop_limit,
            IpAddr::V6(_) => self.hop_limit_v6,
        }
    }
}
