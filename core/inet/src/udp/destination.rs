//! What is known of a destination, so that datagrams that follow one another need no look-ups.
//!
//! A datagram asks much of where it goes: whether that is this host or everybody, which of our
//! addresses it comes from, how large a packet may be, what the next hop is. The answers change
//! with addresses, routes, neighbours and paths only. So a socket remembers them for its last
//! destination, as Linux does in `sk_dst_cache`.
//!
//! Invariant: whatever changes an answer changes [`Net::route_epoch`](crate::net::Net). Debug
//! builds look again each time and compare.

use core::net::{IpAddr, Ipv4Addr};

use crate::error::Error;
use crate::net::Net;
use crate::options::PathDiscovery;
use crate::output::CachedRoute;
use crate::udp::packet::PacketOptions;

/// A destination that a socket remembers.
#[derive(Clone, Copy)]
pub(crate) struct Destination {
    addr: IpAddr,
    epoch: u32,
    facts: Facts,
    /// The next hop of packets from `routed_from`.
    route: CachedRoute,
    routed_from: IpAddr,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Facts {
    source: Result<IpAddr, Error>,
    is_local: bool,
    is_broadcast: bool,
    /// Largest packet that the link takes, and the path.
    link_mtu: u16,
    path_mtu: u16,
}

impl Destination {
    /// None yet: no epoch is zero before four billion changes.
    pub const NONE: Self = Self {
        addr: IpAddr::V4(Ipv4Addr::UNSPECIFIED),
        epoch: 0,
        facts: Facts {
            source: Err(Error::NetworkUnreachable),
            is_local: false,
            is_broadcast: false,
            link_mtu: 0,
            path_mtu: 0,
        },
        route: CachedRoute::NONE,
        routed_from: IpAddr::V4(Ipv4Addr::UNSPECIFIED),
    };

    /// The source address of packets to it, as [`Net::source_for`] says.
    pub fn source(&self) -> Result<IpAddr, Error> {
        self.facts.source
    }

    /// Whether it is this host.
    pub fn is_local(&self) -> bool {
        self.facts.is_local
    }

    /// Whether it is everybody on the network.
    pub fn is_broadcast(&self) -> bool {
        self.facts.is_broadcast
    }

    /// The largest packet to it, by the rules of a socket.
    pub fn mtu(&self, options: PacketOptions) -> u16 {
        let mtu = match options.path_discovery.looks_at_path() {
            true => self.facts.path_mtu,
            false => self.facts.link_mtu,
        };
        match options.packet_bytes_v6 {
            most @ 1.. if self.addr.is_ipv6() => mtu.min(most),
            _ => mtu,
        }
    }

    /// Where the next hop of packets from `source` is remembered.
    #[inline]
    pub fn route_from(&mut self, source: IpAddr) -> &mut CachedRoute {
        if self.routed_from != source {
            (self.route, self.routed_from) = (CachedRoute::NONE, source);
        }
        &mut self.route
    }
}

impl Net {
    /// Makes `known` what is known of `addr`.
    #[inline]
    pub fn look_up_destination(&self, addr: IpAddr, known: &mut Destination) {
        if known.epoch != self.route_epoch || known.addr != addr {
            self.look_up_other(addr, known);
        }
        debug_assert_eq!(known.facts, self.facts_of(addr), "an epoch was forgotten");
    }

    #[inline(never)]
    fn look_up_other(&self, addr: IpAddr, known: &mut Destination) {
        *known = Destination {
            addr,
            epoch: self.route_epoch,
            facts: self.facts_of(addr),
            ..Destination::NONE
        };
    }

    fn facts_of(&self, addr: IpAddr) -> Facts {
        Facts {
            source: self.source_for(addr),
            is_local: self.is_local(addr),
            is_broadcast: matches!(addr, IpAddr::V4(addr) if self.is_broadcast(addr)),
            link_mtu: self.mtu_by(addr, PathDiscovery::Omit),
            path_mtu: self.mtu_to(addr),
        }
    }
}
