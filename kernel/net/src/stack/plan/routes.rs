//! Routes: those of the tables, and those that follow from addresses.

use alloc::vec::Vec;
use core::net::{IpAddr, Ipv4Addr};

use inet::{Cidr, Prefix, RouteOrigin as Origin, Via};
use sync::{Error, Result};

use super::addresses::{Address, addresses, broadcast};
use super::each_link;
use crate::refusal::refused;
use crate::stack::NetStack;
use crate::stack::interface::LOOPBACK;

/// What happens to packets for a destination.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RouteKind {
    /// They leave by the interface.
    Unicast,
    /// They are for us.
    Local,
    /// They are for everybody on the link.
    Broadcast,
    /// They are refused.
    Unreachable,
}

/// Who made a route.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RouteOrigin {
    /// It follows from an address.
    Address,
    /// It was set, or a DHCP server said so.
    Set,
    /// A router announced it.
    Advert,
}

/// A route.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Route {
    /// The first address of its destinations.
    pub destination: IpAddr,
    /// Bits that they share.
    pub prefix_len: u8,
    /// What happens.
    pub kind: RouteKind,
    /// Who made it.
    pub origin: RouteOrigin,
    /// The router; none if destinations are neighbours.
    pub gateway: Option<IpAddr>,
    /// The number of the interface to leave by.
    pub interface: u32,
    /// The address to send from.
    pub source: Option<IpAddr>,
    /// Among equals the lowest is taken.
    pub metric: u32,
}

fn network(ip: Ipv4Addr, prefix_len: u8) -> Ipv4Addr {
    Cidr::new(ip, prefix_len).map_or(ip, |cidr| ip & cidr.mask())
}

/// A route that follows from `own`.
fn of_address(own: &Address, kind: RouteKind, destination: IpAddr, prefix_len: u8) -> Route {
    Route {
        destination,
        prefix_len,
        kind,
        origin: RouteOrigin::Address,
        gateway: None,
        interface: own.interface,
        // IPv6 chooses its source by rules of its own.
        source: Some(own.ip).filter(IpAddr::is_ipv4),
        metric: 0,
    }
}

/// What an address makes besides the way to its network, which the stack has: the way to
/// itself, and to everybody there.
fn routes_of(own: &Address, to: &mut Vec<Route>) {
    if let (LOOPBACK, IpAddr::V4(ip)) = (own.interface, own.ip) {
        let first = network(ip, own.prefix_len).into();
        to.push(of_address(own, RouteKind::Local, first, own.prefix_len));
    }
    let bits = if own.ip.is_ipv4() { 32 } else { 128 };
    to.push(of_address(own, RouteKind::Local, own.ip, bits));
    if let Some(everybody) = broadcast(own) {
        to.push(of_address(own, RouteKind::Broadcast, everybody.into(), 32));
    }
}

/// A line of the table of an interface's stack.
fn of_stack(interface: u32, route: &inet::Route, own: Option<Cidr>) -> Route {
    let destination = route.destination.network();
    let gateway = match route.via {
        Via::Router(router) => Some(router),
        Via::OnLink | Via::Unreachable => None,
    };
    let own = own.map(|own| IpAddr::V4(own.addr()));
    Route {
        destination,
        prefix_len: route.destination.prefix_len(),
        kind: match route.via {
            Via::Unreachable => RouteKind::Unreachable,
            Via::OnLink | Via::Router(_) => RouteKind::Unicast,
        },
        origin: match (route.origin, gateway) {
            (Origin::Address, None) => RouteOrigin::Address,
            (Origin::Address, Some(_)) | (Origin::Static, _) => RouteOrigin::Set,
            (Origin::Advert, _) => RouteOrigin::Advert,
        },
        gateway,
        interface,
        source: own.filter(|_| route.origin == Origin::Address && gateway.is_none()),
        metric: route.metric,
    }
    .without_foreign_source()
}

impl Route {
    /// A source is of the destination's family.
    fn without_foreign_source(self) -> Self {
        let is_v4 = self.destination.is_ipv4();
        let source = self.source.filter(|source| source.is_ipv4() == is_v4);
        Self { source, ..self }
    }

    fn leads_to(&self, to: IpAddr) -> bool {
        let prefix = Prefix::new(self.destination, self.prefix_len);
        prefix.is_some_and(|prefix| prefix.contains(to))
    }
}

/// All routes: the stack's, best first, then those that follow from addresses.
pub fn routes(of: &NetStack) -> Vec<Route> {
    let mut routes = Vec::new();
    each_link(of, |of, stack| {
        let own = stack.address();
        routes.extend(stack.routes().map(|route| of_stack(of.number, route, own)));
    });
    for own in addresses(of) {
        routes_of(&own, &mut routes);
    }
    routes
}

/// Where a packet to `to` would go: the longest prefix, then the lowest metric.
///
/// Errors: `NetworkUnreachable`, `AddressNotAvailable` if there is no address to send from.
pub fn way_to(of: &NetStack, to: IpAddr) -> Result<Route> {
    let best = routes(of)
        .into_iter()
        .filter(|route| route.leads_to(to) && route.kind != RouteKind::Unreachable)
        .max_by_key(|route| (route.prefix_len, u32::MAX - route.metric));
    let best = best.ok_or(Error::NetworkUnreachable)?;
    let source = of.on_interface(best.interface, |stack, _| stack.source_for(to));
    let source = source.ok_or(Error::NetworkDown)?.map_err(refused)?;
    let is_local = best.kind == RouteKind::Local;
    Ok(Route {
        destination: to,
        prefix_len: if to.is_ipv4() { 32 } else { 128 },
        source: Some(source),
        interface: if is_local { LOOPBACK } else { best.interface },
        ..best
    })
}
