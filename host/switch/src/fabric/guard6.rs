//! Who may say what over IPv6: what a member sends comes from its own addresses, and it answers for no others.
//!
//! Its own are the lease's, and link-local ones, which machines make up for themselves. Of those each belongs to who used it
//! first, until it leaves (RFC 6620), a few for each member; the one that follows from a member's station is that member's.
//! Nobody here is a router, so what routers say goes nowhere (RFC 6105). Discovery that hides in fragments (RFC 6980) or behind more
//! headers than receivers read is dropped with them.

use std::collections::BTreeMap;
use std::net::Ipv6Addr;

use wire::{
    Extensions, IPV6_HEADER_BYTES, Icmpv6View, Ipv6View, NdpOption, NdpOptions, NdpRepr,
    next_header,
};

use super::{Dropped, Fabric, MemberId};

/// Link-local addresses of one member.
const LINK_LOCALS_MAX: usize = 4;
/// Types of ICMPv6 that are neighbour discovery (RFC 4861 4).
const DISCOVERY: std::ops::RangeInclusive<u8> = 133..=137;
/// Headers that are not the last one.
const EXTENSIONS: [u8; 4] = [
    next_header::HOP_BY_HOP,
    next_header::ROUTING,
    next_header::FRAGMENT,
    next_header::DESTINATION,
];

/// Whose link-local addresses are whose.
#[derive(Debug, Default)]
pub(super) struct LinkLocals(BTreeMap<Ipv6Addr, MemberId>);

impl LinkLocals {
    /// A member has left.
    pub(super) fn forget(&mut self, id: MemberId) {
        self.0.retain(|_, owner| *owner != id);
    }

    /// Whether `id` has it, or has it from now on.
    fn is_of(&mut self, id: MemberId, address: Ipv6Addr) -> bool {
        if let Some(owner) = self.0.get(&address) {
            return *owner == id;
        }
        let has_room = self.0.values().filter(|owner| **owner == id).count() < LINK_LOCALS_MAX;
        if has_room {
            self.0.insert(address, id);
        }
        has_room
    }
}

impl Fabric {
    /// Whether the member `id` may send that.
    pub(super) fn check_ipv6(&mut self, id: MemberId, packet: &[u8]) -> Result<(), Dropped> {
        let ip = Ipv6View::parse(packet, packet.len()).map_err(|_| Dropped::Malformed)?;
        if !ip.src().is_unspecified() && !self.is_own_ipv6(id, ip.src()) {
            return Err(Dropped::NotTheSenders);
        }
        let end = IPV6_HEADER_BYTES + usize::from(ip.payload_len());
        let rest = packet.get(IPV6_HEADER_BYTES..end).unwrap_or_default();
        let chain = Extensions::parse(rest, ip.next_header()).map_err(|_| Dropped::Malformed)?;
        let message = rest.get(chain.len..).unwrap_or_default();
        let is_discovery = chain.upper == next_header::ICMPV6
            && message.first().is_some_and(|kind| DISCOVERY.contains(kind));
        match chain.fragment.filter(|piece| !piece.is_atomic()) {
            Some(piece) if piece.offset > 0 => Ok(()),
            Some(_) if message.is_empty() || EXTENSIONS.contains(&chain.upper) => {
                Err(Dropped::Malformed)
            }
            Some(_) if is_discovery => Err(Dropped::NotTheSenders),
            None if is_discovery => {
                let view = Icmpv6View::parse(message, ip.src(), ip.dst());
                self.check_discovery(id, &ip, &view.map_err(|_| Dropped::Malformed)?)
            }
            _ => Ok(()),
        }
    }

    fn check_discovery(
        &mut self,
        id: MemberId,
        ip: &Ipv6View<'_>,
        message: &Icmpv6View<'_>,
    ) -> Result<(), Dropped> {
        let parsed = NdpRepr::parse(message).map_err(|_| Dropped::Malformed)?;
        let (said, options) = parsed.ok_or(Dropped::Malformed)?;
        let is_own = match said {
            NdpRepr::RouterSolicit => true,
            NdpRepr::RouterAdvert(_) | NdpRepr::Redirect { .. } => false,
            // One that has no address yet asks for its own.
            NdpRepr::NeighborSolicit { target } if ip.src().is_unspecified() => {
                self.is_own_ipv6(id, target)
            }
            NdpRepr::NeighborSolicit { .. } => true,
            NdpRepr::NeighborAdvert { target, .. } => self.is_own_ipv6(id, target),
        };
        match is_own && self.names_own_station(id, &options) {
            true => Ok(()),
            false => Err(Dropped::NotTheSenders),
        }
    }

    fn names_own_station(&self, id: MemberId, options: &NdpOptions<'_>) -> bool {
        let own = self.members.get(&id).map(|station| station.lease.mac);
        options.iter().all(|option| match option {
            NdpOption::SourceLink(station) | NdpOption::TargetLink(station) => {
                Some(station.0) == own
            }
            _ => true,
        })
    }

    fn is_own_ipv6(&mut self, id: MemberId, address: Ipv6Addr) -> bool {
        let is_leased = |own: MemberId| {
            let lease = self.members.get(&own).map(|station| station.lease);
            lease.is_some_and(|lease| {
                lease.address6 == Some(address) || link_local_of(lease.mac) == address
            })
        };
        if is_leased(id) {
            return true;
        }
        let mut others = self.members.keys().filter(|other| **other != id);
        address.is_unicast_link_local()
            && !others.any(|other| is_leased(*other))
            && self.link_locals.is_of(id, address)
    }
}

/// The link-local address that follows from a station (RFC 4291, appendix A).
fn link_local_of([a, b, c, d, e, f]: [u8; 6]) -> Ipv6Addr {
    let id = u64::from_be_bytes([a ^ 2, b, c, 0xff, 0xfe, d, e, f]);
    Ipv6Addr::from((0xfe80 << 112) | u128::from(id))
}
