//! The part of a stack that all its sockets share.

use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::net::{IpAddr, Ipv4Addr};

use base::Instant;
use mbuf::Chain;

use crate::addr::{Cidr, Endpoint, FourTuple};
use crate::boxed::Boxed;
use crate::budget::Budget;
use crate::config::Config;
use crate::counters::{Count, DropReason, ResetReason, Stats};
use crate::counters6::Snmp6;
use crate::error::Error;
use crate::hash::Key;
use crate::input::prediction::Predictions;
use crate::ipv6::Ipv6;
use crate::journal::Journal;
use crate::memory::{Ledger, Relief};
use crate::multicast::Groups;
use crate::neighbor::Neighbors;
use crate::options::{Device, PathDiscovery};
use crate::path::Paths;
use crate::port::Port;
use crate::ports::Demux;
use crate::reassembly::Reassembly;
use crate::route::Routes;
use crate::share::Share;
use crate::tcp::{Autocork, Departed, TimeWait};
use crate::totals::Tally;
use crate::unsolicited::Unsolicited;
use crate::wheel::Wheel;

/// Packets to ourselves that may wait while packet memory is scarce.
const LOOPBACK_PACKETS_SCARCE: usize = 64;

/// Bytes of a packet to ourselves over IPv6 at most, as Linux tells them.
const LOOPBACK_MTU_V6: u32 = 65_536;

/// Resets of what belongs to no connection.
const RESETS_PER_SECOND: u32 = 2000;

/// Neighbours, routes, ports, timers and counters.
pub(crate) struct Net {
    pub config: Config,
    pub key: Key,
    pub port: Option<Port>,
    pub address: Option<Cidr>,
    pub gateway: Option<Ipv4Addr>,
    /// Unless it is the only stack.
    pub share: Option<Share>,
    /// Changes with everything that a cached route depends on.
    pub route_epoch: u32,
    pub routes: Routes,
    /// IPv4's, IPv6's.
    pub neighbors: [Neighbors; 2],
    pub paths: Paths,
    pub groups: Groups,
    /// Addresses and timers of IPv6, once it was started.
    pub v6: Option<Ipv6>,
    pub reassembly: Reassembly,
    /// When the next of all these is due; `START` if that must be looked for.
    pub upkeep_due: Instant,
    pub icmp_errors: Budget,
    /// Packets, from the IP header on, with their checksums left out.
    pub loopback: VecDeque<Chain>,
    /// Whether the packet in hand is one of them.
    pub is_looped: bool,
    pub unsolicited: Unsolicited,
    pub demux: Demux,
    pub predictions: Predictions,
    pub wheel: Wheel,
    pub time_wait: TimeWait,
    /// Connections that have left for another stack.
    pub departed: Departed,
    /// Sockets that owe an acknowledgement at the end of the batch.
    pub ack_queue: Vec<u32>,
    /// What is known of frames that were handed out.
    pub autocork: Autocork,
    pub orphans: Tally,
    /// Bytes that the buffers of all connections have grown by.
    pub grown: Tally,
    /// What connections and datagram sockets hold of packet memory.
    pub tcp_memory: Ledger,
    pub udp_memory: Ledger,
    /// The shell's pool has no more than its reserve.
    pub is_scarce: bool,
    /// Filters and raw sockets may ask for IP headers of all packets: there is, or was, a socket
    /// with a filter, or a raw one of TCP or UDP.
    pub keeps_headers: bool,
    /// There is, or was, a TCP socket that drops what comes from too far away.
    pub limits_hops: bool,
    /// Nobody new is let in.
    pub is_heap_short: bool,
    pub relief: Relief,
    pub stats: Boxed<Stats>,
    pub journal: Journal,
    pub challenges: Budget,
    resets: Budget,
}

/// A call of its own: they are on the stack before they are on the heap.
#[inline(never)]
fn no_stats() -> Option<Boxed<Stats>> {
    Boxed::new(Stats::default())
}

impl Net {
    /// `None` without memory for it.
    pub fn new(config: Config, key: Key) -> Option<Self> {
        let stats = no_stats()?;
        let wheel = Wheel::new()?;
        Some(Self {
            config,
            key,
            port: None,
            address: None,
            gateway: None,
            share: None,
            route_epoch: 1,
            routes: Routes::default(),
            neighbors: [Neighbors::default(), Neighbors::default()],
            paths: Paths::default(),
            groups: Groups::default(),
            v6: None,
            reassembly: Reassembly::default(),
            upkeep_due: Instant::START,
            icmp_errors: Budget::new(config.icmp_errors_per_second),
            loopback: VecDeque::new(),
            is_looped: false,
            unsolicited: Unsolicited::new(),
            demux: Demux::new(key, config.ports),
            predictions: Predictions::default(),
            wheel,
            time_wait: TimeWait::new(config.time_waits_max, &config.time_wait, key),
            departed: Departed::default(),
            ack_queue: Vec::new(),
            autocork: Autocork::default(),
            orphans: Tally::default(),
            grown: Tally::default(),
            tcp_memory: Ledger::new(config.tcp_memory),
            udp_memory: Ledger::new(config.udp_memory),
            is_scarce: false,
            keeps_headers: false,
            limits_hops: false,
            is_heap_short: false,
            relief: Relief::NONE,
            stats,
            journal: Journal::default(),
            challenges: Budget::new(config.challenges_per_second),
            resets: Budget::new(RESETS_PER_SECOND),
        })
    }

    pub fn drop(&mut self, reason: DropReason) {
        self.stats.drops.count(reason);
    }

    /// A reset was sent.
    pub fn count_reset(&mut self, reason: ResetReason) {
        self.stats.counts.count(Count::ResetsOut);
        self.stats.resets.count(reason);
    }

    pub fn count(&mut self, what: Count) {
        self.stats.counts.count(what);
    }

    /// Whether whoever sent the packet in hand, for no connection, gets an answer.
    pub fn admits_unsolicited(&mut self, now: Instant) -> bool {
        self.is_looped || self.unsolicited.admit(now)
    }

    /// Whether the SYN in hand, for `listener`, gets no answer and is not worth a look.
    pub fn turns_away(&mut self, now: Instant, listener: Endpoint) -> bool {
        !self.is_looped && self.unsolicited.turns_away(now, listener)
    }

    pub fn count_bytes(&mut self, what: Count, of: &Chain) {
        self.stats.counts.add(what, of.len() as u64);
    }

    pub fn count6(&mut self, what: Snmp6) {
        self.stats.snmp6.count(what);
    }

    /// A packet to `dst` was not sent.
    pub fn drop_out(&mut self, dst: IpAddr, reason: DropReason) {
        self.drop(reason);
        if dst.is_ipv6() {
            self.count6(match reason {
                DropReason::NoRoute => Snmp6::OutNoRoutes,
                _ => Snmp6::OutDiscards,
            });
        }
    }

    pub fn neighbors_of(&self, ip: IpAddr) -> &Neighbors {
        &self.neighbors[usize::from(ip.is_ipv6())]
    }

    pub fn neighbors_mut(&mut self, ip: IpAddr) -> &mut Neighbors {
        self.change_upkeep();
        &mut self.neighbors[usize::from(ip.is_ipv6())]
    }

    /// Neighbours, paths, groups, routes, addresses or fragments may have another deadline
    /// now. Each call that can give them one says so.
    pub fn change_upkeep(&mut self) {
        self.upkeep_due = Instant::START;
    }

    /// When the next of them is due. They rarely change, and there may be many of them, so it
    /// is remembered.
    #[inline]
    pub fn next_upkeep(&self) -> Instant {
        match self.upkeep_due {
            Instant::START => self.look_for_upkeep(),
            due => {
                debug_assert!(due <= self.look_for_upkeep(), "a deadline was forgotten");
                due
            }
        }
    }

    #[cold]
    fn look_for_upkeep(&self) -> Instant {
        let candidates = [
            self.neighbors[0].next_deadline(),
            self.neighbors[1].next_deadline(),
            self.paths.next_deadline(),
            self.groups.next_deadline(),
            self.routes.next_deadline(),
            self.v6.as_ref().and_then(Ipv6::next_deadline),
            self.reassembly.next_deadline(),
        ];
        let soonest = candidates.into_iter().flatten().min();
        soonest.unwrap_or(Instant::NEVER)
    }

    /// Makes all copies of routes and link headers look anew.
    pub fn change_routes(&mut self) {
        self.change_upkeep();
        self.route_epoch = self.route_epoch.wrapping_add(1);
    }

    /// Whether packets for `addr` are for this host.
    pub fn is_local(&self, addr: IpAddr) -> bool {
        match addr {
            IpAddr::V4(addr) => self.is_local_v4(addr),
            IpAddr::V6(addr) => addr.is_loopback() || self.owns_v6(addr),
        }
    }

    /// By which sockets of one port share the datagrams of unknown senders.
    pub fn spread(&self, local: Endpoint, remote: Endpoint) -> u64 {
        self.key.tuple(&FourTuple { local, remote })
    }

    pub fn is_local_v4(&self, addr: Ipv4Addr) -> bool {
        addr.is_loopback() || self.address.is_some_and(|own| own.addr() == addr)
    }

    /// Whether a socket may have `addr` as its own.
    pub fn is_bindable(&self, addr: IpAddr) -> bool {
        let is_broadcast = matches!(addr, IpAddr::V4(addr) if self.is_broadcast(addr));
        addr.is_unspecified() || addr.is_multicast() || self.is_local(addr) || is_broadcast
    }

    /// Whether a stream may be opened to `addr`: it names one host.
    pub fn is_host(&self, addr: IpAddr) -> bool {
        let is_broadcast = matches!(addr, IpAddr::V4(addr) if self.is_broadcast(addr));
        !addr.is_unspecified() && !addr.is_multicast() && !is_broadcast
    }

    /// The source address of packets to `dst`.
    ///
    /// Errors: `NetworkUnreachable` and `HostUnreachable` without a way,
    /// `AddressNotAvailable` without an address that fits.
    pub fn source_for(&self, dst: IpAddr) -> Result<IpAddr, Error> {
        if self.is_local(dst) {
            return Ok(dst);
        }
        self.route(dst, None)?;
        match dst {
            IpAddr::V4(_) => {
                let own = self.address.map_or(Ipv4Addr::UNSPECIFIED, |own| own.addr());
                Ok(IpAddr::V4(own))
            }
            IpAddr::V6(dst) => {
                let own = self.v6.as_ref().and_then(|v6| v6.source_for(dst));
                own.map(IpAddr::V6).ok_or(Error::AddressNotAvailable)
            }
        }
    }

    /// Errors: `NetworkUnreachable` if packets to `dst` do not go by `device`.
    pub fn check_device(&self, dst: IpAddr, device: Device) -> Result<(), Error> {
        match device.reaches(dst, self.is_local(dst)) {
            true => Ok(()),
            false => Err(Error::NetworkUnreachable),
        }
    }

    /// Largest packet to `dst`.
    #[inline]
    pub fn mtu_to(&self, dst: IpAddr) -> u16 {
        match self.link_mtu_to(dst) {
            None => u16::MAX,
            Some(link) => self.paths.mtu_to(dst, link),
        }
    }

    /// The same by the rules of a socket.
    pub fn mtu_by(&self, dst: IpAddr, discovery: PathDiscovery) -> u16 {
        match discovery.looks_at_path() {
            true => self.mtu_to(dst),
            false => self.link_mtu_to(dst).unwrap_or(u16::MAX),
        }
    }

    /// Largest packet that the link to `dst` takes; `None` if it does not leave us.
    #[inline]
    fn link_mtu_to(&self, dst: IpAddr) -> Option<u16> {
        let port = self.port.filter(|_| !self.is_local(dst))?;
        Some(match (dst, &self.v6) {
            (IpAddr::V6(_), Some(v6)) => v6.mtu(port.mtu),
            _ => port.mtu,
        })
    }

    /// What programs are told of the largest packet to `dst`.
    pub fn mtu_told(&self, dst: IpAddr, discovery: PathDiscovery) -> u32 {
        match dst.is_ipv6() && self.is_local(dst) {
            true => LOOPBACK_MTU_V6,
            false => self.mtu_by(dst, discovery).into(),
        }
    }

    /// Whether `addr` means everybody on the network.
    pub fn is_broadcast(&self, addr: Ipv4Addr) -> bool {
        addr.is_broadcast() || self.address.is_some_and(|own| own.broadcast() == addr)
    }

    /// Takes up the connection of the socket in slot `index`.
    ///
    /// Errors: `NoBuffers` if there is no memory for larger tables.
    pub fn admit(&mut self, tuple: &FourTuple, index: u32) -> Result<(), Error> {
        let missing = (index as usize + 1).saturating_sub(self.ack_queue.len());
        if !self.wheel.reserve(index) || self.ack_queue.try_reserve(missing).is_err() {
            return Err(Error::NoBuffers);
        }
        self.demux.connect(tuple, index)
    }

    /// Queues a packet to ourselves.
    pub fn push_loopback(&mut self, packet: Chain) {
        let most = match self.is_scarce {
            true => LOOPBACK_PACKETS_SCARCE,
            false => self.config.loopback_packets_max,
        };
        if self.loopback.len() >= most || self.loopback.try_reserve(1).is_err() {
            self.drop(DropReason::LoopbackFull);
            return;
        }
        self.loopback.push_back(packet);
    }

    /// Whether RFC 5961 allows one more challenge acknowledgement now.
    pub fn may_challenge(&mut self, now: Instant) -> bool {
        self.challenges.take(&self.key, now)
    }

    /// Whether one more segment that belongs to nothing is answered with a reset now.
    pub fn may_reset(&mut self, now: Instant) -> bool {
        self.resets.take(&self.key, now)
    }
}
