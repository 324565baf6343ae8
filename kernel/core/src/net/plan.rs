//! Addresses, routes and neighbours in one shape for both families, to be shown and changed.
//!
//! The stack keeps what its packets need; here it becomes what `ip` shows. What follows from
//! an address (the route to its network, those to ourselves) is not stored anywhere.
//! Not here: numbers and layouts of netlink (`netlink`).

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use base::Instant;
use inet::{AddressState, Cidr, NeighborEntry, NeighborState, Prefix, RouteOrigin as Origin, Via};

use super::interface::{Interface, LOOPBACK_FACTS, Name, interfaces, on_interface};
use super::shard::{self, each_stack, with_shard};
use super::surroundings::Link;
use super::{CARD, LOOPBACK};
use crate::error::{Error, Result};

/// An address of an interface.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Address {
    /// The interface's number.
    pub interface: u32,
    /// And its name.
    pub label: Name,
    /// The address.
    pub ip: IpAddr,
    /// Bits of its network.
    pub prefix_len: u8,
    /// Where it is in its life.
    pub state: AddressState,
    /// When it is deprecated.
    pub preferred_until: Instant,
    /// When it is gone.
    pub valid_until: Instant,
}

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

/// A station on the link.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Neighbour {
    /// The interface's number.
    pub interface: u32,
    /// Its address.
    pub ip: IpAddr,
    /// Where frames to it go, once that is known.
    pub mac: Option<[u8; 6]>,
    /// What is known of it.
    pub state: NeighborState,
}

/// All that listeners to changes can hear of.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Plan {
    /// Of all interfaces.
    pub addresses: Vec<Address>,
    /// Of both tables.
    pub routes: Vec<Route>,
    /// On all links.
    pub neighbours: Vec<Neighbour>,
}

const LOOPBACK_BITS: u8 = 8;

/// An address that stays.
fn lasting(of: &Interface, ip: IpAddr, prefix_len: u8) -> Address {
    Address {
        interface: of.number,
        label: of.name,
        ip,
        prefix_len,
        state: AddressState::Preferred,
        preferred_until: Instant::NEVER,
        valid_until: Instant::NEVER,
    }
}

/// All addresses, by interface.
pub fn addresses() -> Vec<Address> {
    let mut all = Vec::from([
        lasting(&LOOPBACK_FACTS, Ipv4Addr::LOCALHOST.into(), LOOPBACK_BITS),
        lasting(&LOOPBACK_FACTS, Ipv6Addr::LOCALHOST.into(), 128),
    ]);
    each_link(|of, stack| {
        let own = stack.address();
        all.extend(own.map(|own| lasting(of, own.addr().into(), own.prefix_len())));
        all.extend(stack.addresses_v6().map(|own| Address {
            interface: of.number,
            label: of.name,
            ip: own.addr.into(),
            prefix_len: own.prefix_len,
            state: own.state,
            preferred_until: own.preferred_until,
            valid_until: own.valid_until,
        }));
    });
    all
}

/// Shows the stacks behind all interfaces but loopback.
fn each_link(mut look: impl FnMut(&Interface, &mut inet::Stack)) {
    for interface in interfaces().filter(|interface| interface.number != LOOPBACK) {
        on_interface(interface.number, |stack, _| look(&interface, stack));
    }
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

/// The address of everybody on the network of `own`, where there is such an address.
pub fn broadcast(own: &Address) -> Option<Ipv4Addr> {
    let IpAddr::V4(ip) = own.ip else { return None };
    let cidr = Cidr::new(ip, own.prefix_len).filter(|cidr| cidr.prefix_len() < 31)?;
    Some(cidr.broadcast())
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
pub fn routes() -> Vec<Route> {
    let mut routes = Vec::new();
    each_link(|of, stack| {
        let own = stack.address();
        routes.extend(stack.routes().map(|route| of_stack(of.number, route, own)));
    });
    for own in addresses() {
        routes_of(&own, &mut routes);
    }
    routes
}

/// All neighbours, by address. Each shard knows those that it talks to; of what several know
/// of one, that is told which comes with a station.
pub fn neighbours() -> Vec<Neighbour> {
    let known = each_stack(|stack| stack.neighbor_entries().collect::<Vec<_>>());
    let mut all: BTreeMap<(u32, IpAddr), Neighbour> = BTreeMap::new();
    let mut put = |interface, entry: NeighborEntry| {
        let neighbour = Neighbour {
            interface,
            ip: entry.ip,
            mac: entry.station.map(|station| station.0),
            state: entry.state,
        };
        let best = all.entry((interface, entry.ip)).or_insert(neighbour);
        if best.mac.is_none() {
            *best = neighbour;
        }
    };
    known
        .into_iter()
        .flatten()
        .for_each(|entry| put(CARD, entry));
    each_link(|of, stack| {
        let entries = stack.neighbor_entries().filter(|_| of.number != CARD);
        entries.for_each(|entry| put(of.number, entry));
    });
    all.into_values().collect()
}

/// Everything at once.
pub fn plan() -> Plan {
    Plan {
        addresses: addresses(),
        routes: routes(),
        neighbours: neighbours(),
    }
}

/// Where a packet to `to` would go: the longest prefix, then the lowest metric.
///
/// Errors: `NetworkUnreachable`, `AddressNotAvailable` if there is no address to send from.
pub fn way_to(to: IpAddr) -> Result<Route> {
    let best = routes()
        .into_iter()
        .filter(|route| route.leads_to(to) && route.kind != RouteKind::Unreachable)
        .max_by_key(|route| (route.prefix_len, u32::MAX - route.metric));
    let best = best.ok_or(Error::NetworkUnreachable)?;
    let source = on_interface(best.interface, |stack, _| stack.source_for(to));
    let source = source.ok_or(Error::NetworkDown)??;
    let is_local = best.kind == RouteKind::Local;
    Ok(Route {
        destination: to,
        prefix_len: if to.is_ipv4() { 32 } else { 128 },
        source: Some(source),
        interface: if is_local { LOOPBACK } else { best.interface },
        ..best
    })
}

/// Gives an interface an address.
///
/// Errors: `Exists` if it has it, `NoBuffers` if it can have no more, `Unsupported` for what
/// the stack does not do, `Invalid` for no address of a host.
pub fn add_address(interface: u32, ip: IpAddr, prefix_len: u8) -> Result<()> {
    if interface == LOOPBACK {
        return Err(Error::Unsupported);
    }
    match ip {
        IpAddr::V4(ip) => add_address4(interface, ip, prefix_len),
        IpAddr::V6(ip) => change(interface, |stack, link| {
            stack
                .add_address_v6(link, ip, prefix_len)
                .map_err(|error| match error {
                    inet::Error::AddressInUse => Error::Exists,
                    inet::Error::AddressNotAvailable => Error::Invalid,
                    error => error.into(),
                })
        }),
    }
}

/// A stack has one address of IPv4.
fn add_address4(interface: u32, ip: Ipv4Addr, prefix_len: u8) -> Result<()> {
    let cidr = Cidr::new(ip, prefix_len).ok_or(Error::Invalid)?;
    if ip.is_unspecified() || ip.is_multicast() || ip.is_loopback() {
        return Err(Error::Invalid);
    }
    change(interface, |stack, _| match stack.address() {
        Some(own) if own == cidr => Err(Error::Exists),
        Some(_) => Err(Error::NoBuffers),
        None => {
            stack.set_address(Some(cidr));
            Ok(())
        }
    })
}

/// Takes an address away. With one of IPv4 goes the router to all other networks if it is
/// no neighbour any more.
///
/// Errors: `AddressNotAvailable` if the interface does not have it.
pub fn remove_address(interface: u32, ip: IpAddr) -> Result<()> {
    if interface == LOOPBACK {
        return Err(Error::AddressNotAvailable);
    }
    change(interface, |stack, link| {
        let ip = match ip {
            IpAddr::V4(ip) => ip,
            IpAddr::V6(ip) => return Ok(stack.remove_address_v6(link, ip)?),
        };
        let own = stack.address().filter(|own| own.addr() == ip);
        let own = own.ok_or(Error::AddressNotAvailable)?;
        let router = stack.gateway().filter(|router| !own.contains(*router));
        stack.set_gateway(router);
        stack.set_address(None);
        Ok(())
    })
}

/// Whether a route is the one to all other networks of IPv4, which is kept apart because
/// DHCP says it too.
fn is_default4(route: &Route) -> bool {
    route.destination.is_ipv4() && route.prefix_len == 0 && route.metric == 0
}

/// Sets a route; with `replaces` in place of one for the same destination and metric.
///
/// Errors: `Exists`, `NetworkUnreachable` if the router is no neighbour, `NoBuffers`,
/// `Invalid` for a destination that is no network.
pub fn add_route(new: &Route, replaces: bool) -> Result<()> {
    let destination = Prefix::new(new.destination, new.prefix_len).ok_or(Error::Invalid)?;
    if destination.network() != new.destination {
        return Err(Error::Invalid);
    }
    let is_same = |old: &inet::Route| old.destination == destination && old.metric == new.metric;
    change(new.interface, |stack, _| {
        if stack.routes().any(is_same) && !replaces {
            return Err(Error::Exists);
        }
        let is_on_link = |router| {
            let mut near = stack.routes().filter(|route| route.via == Via::OnLink);
            near.any(|route| route.destination.contains(router))
        };
        if new.gateway.is_some_and(|router| !is_on_link(router)) {
            return Err(Error::NetworkUnreachable);
        }
        if let (true, Some(IpAddr::V4(router))) = (is_default4(new), new.gateway) {
            stack.set_gateway(Some(router));
            return Ok(());
        }
        stack.remove_route(is_same);
        stack.add_route(inet::Route {
            destination,
            source: None,
            via: new.gateway.map_or(Via::OnLink, Via::Router),
            metric: new.metric,
            origin: Origin::Static,
            expires: Instant::NEVER,
        })?;
        Ok(())
    })
}

/// Takes a route away that was set; router and metric name it where they are given.
///
/// Errors: `NoSuchProcess` if there is no such route, which is how Linux says it.
pub fn remove_route(gone: &Route) -> Result<()> {
    let is_router = |via: Via| gone.gateway.is_none_or(|named| via == Via::Router(named));
    let destination = Prefix::new(gone.destination, gone.prefix_len);
    change(gone.interface, |stack, _| {
        let router = stack.gateway().map(IpAddr::V4);
        if is_default4(gone) && router.is_some_and(|router| is_router(Via::Router(router))) {
            stack.set_gateway(None);
            return Ok(());
        }
        let is_gone = |route: &inet::Route| {
            Some(route.destination) == destination
                && is_router(route.via)
                && (gone.metric == 0 || gone.metric == route.metric)
        };
        match stack.remove_route(is_gone) {
            true => Ok(()),
            false => Err(Error::NoSuchProcess),
        }
    })
}

/// Says where frames to a neighbour go.
///
/// Errors: `NoBuffers` if too many were set.
pub fn set_neighbour(interface: u32, ip: IpAddr, mac: [u8; 6]) -> Result<()> {
    let set = |stack: &mut inet::Stack, link: &mut Link| {
        Ok(stack.set_neighbor(link, ip, wire::MacAddr(mac))?)
    };
    let mut all = on_shards(interface, ip, set);
    all.try_for_each(|set| set.unwrap_or(Err(Error::NetworkDown)))
}

/// Forgets a neighbour.
///
/// Errors: `NotFound`.
pub fn remove_neighbour(interface: u32, ip: IpAddr) -> Result<()> {
    let forget = |stack: &mut inet::Stack, _: &mut Link| stack.forget_neighbor(ip);
    let known = on_shards(interface, ip, forget).filter(|is_known| *is_known == Some(true));
    match known.count() {
        0 => Err(Error::NotFound),
        _ => Ok(()),
    }
}

/// Calls `work` with each stack that has an interface's neighbours of this family.
fn on_shards<R>(
    interface: u32,
    ip: IpAddr,
    work: impl Fn(&mut inet::Stack, &mut Link) -> R,
) -> impl Iterator<Item = Option<R>> {
    let shards = match (interface, ip) {
        (CARD, IpAddr::V4(_)) => 0..shard::count(),
        _ => 0..1,
    };
    shards.map(move |shard| match interface {
        CARD => with_shard(shard, &work),
        station => on_interface(station, &work),
    })
}

/// Changes an interface's stack; the card's first shard, which the others follow.
fn change(
    interface: u32,
    work: impl FnOnce(&mut inet::Stack, &mut Link) -> Result<()>,
) -> Result<()> {
    let changed = on_interface(interface, |stack, link| {
        work(stack, link)?;
        if interface == CARD {
            super::routes::follow(stack, link);
        }
        Ok(())
    });
    changed.unwrap_or(Err(Error::NetworkDown))
}
