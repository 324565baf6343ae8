//! Routes are set and taken away.

use core::net::IpAddr;

use base::Instant;
use inet::{Prefix, RouteOrigin as Origin, Via};
use sync::{Error, Result};

use super::change;
use super::routes::Route;
use crate::refusal::refused;
use crate::stack::NetStack;

/// Whether a route is the one to all other networks of IPv4, which is kept apart because
/// DHCP says it too.
fn is_default4(route: &Route) -> bool {
    route.destination.is_ipv4() && route.prefix_len == 0 && route.metric == 0
}

/// Sets a route; with `replaces` in place of one for the same destination and metric.
///
/// Errors: `Exists`, `NetworkUnreachable` if the router is no neighbour, `NoBuffers`,
/// `Invalid` for a destination that is no network.
pub fn add_route(of: &NetStack, new: &Route, replaces: bool) -> Result<()> {
    let destination = Prefix::new(new.destination, new.prefix_len).ok_or(Error::Invalid)?;
    if destination.network() != new.destination {
        return Err(Error::Invalid);
    }
    let is_same = |old: &inet::Route| old.destination == destination && old.metric == new.metric;
    change(of, new.interface, |stack, _| {
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
        let route = inet::Route {
            destination,
            source: None,
            via: new.gateway.map_or(Via::OnLink, Via::Router),
            metric: new.metric,
            origin: Origin::Static,
            expires: Instant::NEVER,
        };
        stack.add_route(route).map_err(refused)
    })
}

/// Takes a route away that was set; router and metric name it where they are given.
///
/// Errors: `NoSuchProcess` if there is no such route, which is how Linux says it.
pub fn remove_route(of: &NetStack, gone: &Route) -> Result<()> {
    let is_router = |via: Via| gone.gateway.is_none_or(|named| via == Via::Router(named));
    let destination = Prefix::new(gone.destination, gone.prefix_len);
    change(of, gone.interface, |stack, _| {
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
