//! What a program chooses about a queue.

use std::fmt;
use std::net::Ipv4Addr;
use std::ops::RangeInclusive;
use std::str::FromStr;
use std::sync::Arc;

use inet::{Cidr, Config, MemoryLimits, PortRange};
use rt::{CHUNK_BYTES, Filter, Setup};

/// An IPv4 address with its network, as `10.0.2.61/24`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Address(pub(crate) Cidr);

impl Address {
    /// `None` if the prefix is longer than an address.
    pub fn new(host: Ipv4Addr, prefix_len: u8) -> Option<Self> {
        Cidr::new(host, prefix_len).map(Self)
    }

    /// The host's address.
    pub fn host(self) -> Ipv4Addr {
        self.0.addr()
    }

    /// How many bits of it name the network.
    pub fn prefix_len(self) -> u8 {
        self.0.prefix_len()
    }
}

/// The text is no address with its network.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NoAddress;

impl fmt::Display for NoAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("no IPv4 address with its network, as 10.0.2.61/24")
    }
}

impl std::error::Error for NoAddress {}

impl FromStr for Address {
    type Err = NoAddress;

    fn from_str(text: &str) -> Result<Self, NoAddress> {
        let (host, prefix_len) = text.split_once('/').ok_or(NoAddress)?;
        let host = host.parse().map_err(|_| NoAddress)?;
        let prefix_len = prefix_len.parse().map_err(|_| NoAddress)?;
        Self::new(host, prefix_len).ok_or(NoAddress)
    }
}

/// A queue to be opened.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct QueueConfig {
    /// The link's name. While the queue is open all of its frames are the program's, or those of several programs
    /// that have a queue each.
    pub link: String,
    /// The first of these that nobody has is opened. By itself that is the link's first queue and no other.
    pub queues: RangeInclusive<u16>,
    /// Whether it gets flows that no queue of the link has; else not before that is
    /// [asked for](crate::Doorbell::take_new_flows).
    pub takes_new_flows: bool,
    /// The queue of whose share of the ephemeral ports its stack takes some, if that is not the queue itself.
    pub share: Option<u16>,
    /// The part of the link that the program has, if not all: without rights, and while other programs and the kernel's
    /// stack have theirs. It has any queue that is free.
    pub filter: Option<Arc<Filter>>,
    /// The program's address on it. The kernel's stack may have the same, and has it when the
    /// program is gone.
    pub address: Address,
    /// The way to all other networks.
    pub gateway: Option<Ipv4Addr>,
    /// Entries of each ring: frames that wait for the program, and that are on their way. A power
    /// of two.
    pub ring_entries: u32,
    /// Chunks of packet memory, of 2 KiB each; even. They are pinned (RLIMIT_MEMLOCK).
    pub chunks: usize,
    /// Sockets at most.
    pub sockets_max: usize,
}

impl QueueConfig {
    /// What suits a server.
    pub fn new(link: &str, address: Address) -> Self {
        Self {
            link: link.into(),
            queues: 0..=0,
            takes_new_flows: true,
            share: None,
            filter: None,
            address,
            gateway: None,
            ring_entries: 512,
            chunks: 4096,
            sockets_max: 16 * 1024,
        }
    }

    /// Whether it is a card of the program's own, which has one queue.
    pub fn is_card(&self) -> bool {
        // An interface's name may have dots and colons, but no device is called so.
        self.link.contains(':')
    }

    pub(crate) fn setup(&self) -> Setup {
        Setup {
            entries: self.ring_entries,
            chunks: self.chunks,
            reserve: self.chunks / RESERVE_SHARE,
        }
    }

    /// The stack's limits: streams and datagrams together leave a part of the packet memory to
    /// what passes through.
    pub fn stack(&self) -> Config {
        let bytes = self.chunks * CHUNK_BYTES;
        Config {
            sockets_max: self.sockets_max,
            tcp_memory: MemoryLimits::below(bytes / 2),
            udp_memory: MemoryLimits::below(bytes / 4),
            buffer_growth_max: bytes / 4,
            ..Config::default()
        }
    }

    /// The same for a queue of several: its own ports are those by which answers come to it.
    pub(crate) fn stack_of(&self, queue: u16) -> Config {
        let share = link::queues::share(self.share.unwrap_or(queue));
        let ports = share.and_then(|share| PortRange::new(*share.start(), *share.end()));
        Config {
            ports: ports.unwrap_or_default(),
            ..self.stack()
        }
    }
}

/// Queues that a link may have.
pub const QUEUES: RangeInclusive<u16> = 0..=link::queues::QUEUES_MAX - 1;

/// This part of the chunks is for what passes through.
const RESERVE_SHARE: usize = 16;
