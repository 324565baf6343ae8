//! Addresses, routes and neighbours in one shape for both families, to be shown and changed.
//!
//! The stack keeps what its packets need; here it becomes what `ip` shows. What follows from
//! an address (the route to its network, those to ourselves) is not stored anywhere.
//! Not here: numbers and layouts of netlink (`netlink`).

use alloc::vec::Vec;
use core::net::{IpAddr, Ipv4Addr};

use inet::Cidr;

use super::shard::with_stack;
use super::{CARD, LOOPBACK};
use crate::error::{Error, Result};

/// An address of an interface.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Address {
    /// The interface's number.
    pub interface: u32,
    /// The address.
    pub ip: IpAddr,
    /// Bits of its network.
    pub prefix_len: u8,
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
}

/// Who made a route.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RouteOrigin {
    /// It follows from an address.
    Address,
    /// It was set, or a DHCP server said so.
    Set,
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
    /// Where frames to it go.
    pub mac: [u8; 6],
}

/// All that listeners to changes can hear of.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Plan {
    /// Of all interfaces.
    pub addresses: Vec<Address>,
    /// Of both tables.
    pub routes: Vec<Route>,
    /// Those with a known station.
    pub neighbours: Vec<Neighbour>,
}

/// The stack as it is now.
#[derive(Clone, Copy, Default)]
struct Facts {
    address: Option<Cidr>,
    gateway: Option<Ipv4Addr>,
}

fn facts() -> Facts {
    let facts = with_stack(|stack, _| Facts {
        address: stack.address(),
        gateway: stack.gateway(),
    });
    facts.unwrap_or_default()
}

const LOOPBACK_BITS: u8 = 8;

fn address(interface: u32, ip: Ipv4Addr, prefix_len: u8) -> Address {
    Address {
        interface,
        ip: ip.into(),
        prefix_len,
    }
}

/// All addresses, by interface.
pub fn addresses() -> Vec<Address> {
    let own = facts().address;
    let own = own.map(|own| address(CARD, own.addr(), own.prefix_len()));
    let loopback = address(LOOPBACK, Ipv4Addr::LOCALHOST, LOOPBACK_BITS);
    [Some(loopback), own].into_iter().flatten().collect()
}

fn network(ip: Ipv4Addr, prefix_len: u8) -> Ipv4Addr {
    Cidr::new(ip, prefix_len).map_or(ip, |cidr| ip & cidr.mask())
}

/// A route that follows from `own`.
fn of_address(own: &Address, kind: RouteKind, destination: Ipv4Addr, prefix_len: u8) -> Route {
    Route {
        destination: destination.into(),
        prefix_len,
        kind,
        origin: RouteOrigin::Address,
        gateway: None,
        interface: own.interface,
        source: Some(own.ip),
        metric: 0,
    }
}

/// What an address makes: the way to its network, to itself, and to everybody there.
fn routes_of(own: &Address, to: &mut Vec<Route>) {
    let IpAddr::V4(ip) = own.ip else { return };
    let bits = own.prefix_len;
    let way = match own.interface {
        LOOPBACK => RouteKind::Local,
        _ => RouteKind::Unicast,
    };
    to.push(of_address(own, way, network(ip, bits), bits));
    to.push(of_address(own, RouteKind::Local, ip, 32));
    if let Some(everybody) = broadcast(own) {
        to.push(of_address(own, RouteKind::Broadcast, everybody, 32));
    }
}

/// The address of everybody on the network of `own`, where there is such an address.
pub fn broadcast(own: &Address) -> Option<Ipv4Addr> {
    let IpAddr::V4(ip) = own.ip else { return None };
    let cidr = Cidr::new(ip, own.prefix_len).filter(|cidr| cidr.prefix_len() < 31)?;
    Some(cidr.broadcast())
}

/// All routes: those that were set, then those that follow from addresses.
pub fn routes() -> Vec<Route> {
    let set = facts().gateway.map(|gateway| Route {
        destination: Ipv4Addr::UNSPECIFIED.into(),
        prefix_len: 0,
        kind: RouteKind::Unicast,
        origin: RouteOrigin::Set,
        gateway: Some(gateway.into()),
        interface: CARD,
        source: None,
        metric: 0,
    });
    let mut routes: Vec<Route> = set.into_iter().collect();
    for own in addresses() {
        routes_of(&own, &mut routes);
    }
    routes
}

/// All neighbours with a known station.
pub fn neighbours() -> Vec<Neighbour> {
    let known = with_stack(|stack, _| {
        let known = stack.neighbors().map(|(ip, mac)| Neighbour {
            interface: CARD,
            ip: ip.into(),
            mac: mac.0,
        });
        known.collect()
    });
    known.unwrap_or_default()
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
/// Errors: `NetworkUnreachable`.
pub fn way_to(to: IpAddr) -> Result<Route> {
    let IpAddr::V4(four) = to else {
        return Err(Error::NetworkUnreachable);
    };
    let leads = |route: &Route| match route.destination {
        IpAddr::V4(first) => network(four, route.prefix_len) == first,
        IpAddr::V6(_) => false,
    };
    let best = routes()
        .into_iter()
        .filter(leads)
        .max_by_key(|route| (route.prefix_len, u32::MAX - route.metric));
    let best = best.ok_or(Error::NetworkUnreachable)?;
    let own = facts().address.map(|own| own.addr().into());
    let is_local = best.kind == RouteKind::Local;
    Ok(Route {
        destination: to,
        prefix_len: 32,
        source: if is_local { Some(to) } else { own },
        interface: if is_local { LOOPBACK } else { best.interface },
        ..best
    })
}

/// Gives an interface an address.
///
/// Errors: `Exists` if it has it, `NoBuffers` if it has another and can have no more,
/// `Unsupported` for what the stack does not do, `Invalid` for no address of a host.
pub fn add_address(new: &Address) -> Result<()> {
    let (CARD, IpAddr::V4(ip)) = (new.interface, new.ip) else {
        return Err(Error::Unsupported);
    };
    let cidr = Cidr::new(ip, new.prefix_len).ok_or(Error::Invalid)?;
    if ip.is_unspecified() || ip.is_multicast() || ip.is_loopback() {
        return Err(Error::Invalid);
    }
    change(|stack| match stack.address() {
        Some(own) if own == cidr => Err(Error::Exists),
        Some(_) => Err(Error::NoBuffers),
        None => {
            stack.set_address(Some(cidr));
            Ok(())
        }
    })
}

/// Takes an address away, and with it the routes that lead through its network.
///
/// Errors: `AddressNotAvailable` if the interface does not have it.
pub fn remove_address(gone: &Address) -> Result<()> {
    let IpAddr::V4(ip) = gone.ip else {
        return Err(Error::AddressNotAvailable);
    };
    change(|stack| {
        let own = stack.address().filter(|own| own.addr() == ip);
        let own = own.filter(|_| gone.interface == CARD);
        let own = own.ok_or(Error::AddressNotAvailable)?;
        let router = stack.gateway().filter(|router| !own.contains(*router));
        stack.set_gateway(router);
        stack.set_address(None);
        Ok(())
    })
}

/// Sets the way to all other networks, the only one that can be set.
///
/// Errors: `Exists` if there is one and `replaces` is not said, `NetworkUnreachable` if the
/// router is no neighbour, `Unsupported` for other routes.
pub fn add_route(new: &Route, replaces: bool) -> Result<()> {
    let (Some(IpAddr::V4(gateway)), 0) = (new.gateway, new.prefix_len) else {
        return Err(Error::Unsupported);
    };
    change(|stack| {
        if stack.gateway().is_some() && !replaces {
            return Err(Error::Exists);
        }
        let own = stack.address().filter(|own| own.contains(gateway));
        own.ok_or(Error::NetworkUnreachable)?;
        stack.set_gateway(Some(gateway));
        Ok(())
    })
}

/// Takes the way to all other networks away; `gateway` names it where it is given.
///
/// Errors: `NoSuchProcess` if there is no such route, which is how Linux says it.
pub fn remove_route(gone: &Route) -> Result<()> {
    change(|stack| {
        let router = stack.gateway().filter(|_| gone.prefix_len == 0);
        let is_meant = |router: &Ipv4Addr| {
            let named = gone.gateway;
            named.is_none_or(|named| named == IpAddr::V4(*router))
        };
        router.filter(is_meant).ok_or(Error::NoSuchProcess)?;
        stack.set_gateway(None);
        Ok(())
    })
}

fn change(work: impl FnOnce(&mut inet::Stack) -> Result<()>) -> Result<()> {
    with_stack(|stack, _| work(stack)).unwrap_or(Err(Error::NetworkDown))
}
