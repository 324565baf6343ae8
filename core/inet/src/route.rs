//! The routing table: longest prefix first, then the source's, then the metric.
//!
//! A route may hold for packets of one source network only: several addresses on one port
//! (VNICs of one machine, prefixes of two providers) each leave by the router that will
//! not drop them (RFC 8678). Routes that routers announce expire and have a share of the
//! table of their own, so that a flood of announcements displaces nothing.
//!
//! The table is small and sorted best first; a look-up is a walk. Connections remember
//! where it led (`output::CachedRoute`), so the walk is not on their way.
//! Not here: neighbours, and what a destination's path takes (`path`).

use alloc::vec::Vec;
use core::net::IpAddr;

use base::Instant;

use crate::addr::Prefix;
use crate::error::Error;

/// Routes that the shell may add.
const STATIC_MAX: usize = 256;
/// Routes that routers may add, of each kind: default routes, networks on the link.
const ADVERTS_MAX: usize = 16;

/// Where a route leads.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Via {
    /// The destination is a neighbour.
    OnLink,
    /// A router, itself a neighbour.
    Router(IpAddr),
    /// Nowhere: packets are refused.
    Unreachable,
}

/// Who added a route.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RouteOrigin {
    /// It follows from the IPv4 address and its gateway.
    Address,
    /// The shell.
    Static,
    /// A router, in an announcement (RFC 4861).
    Advert,
}

/// A line of the table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Route {
    /// Destinations that it is for.
    pub destination: Prefix,
    /// Sources that it is for; `None` for all.
    pub source: Option<Prefix>,
    /// The next hop.
    pub via: Via,
    /// Among equals the lowest is taken.
    pub metric: u32,
    /// Who added it.
    pub origin: RouteOrigin,
    /// When it ends.
    pub expires: Instant,
}

impl Route {
    /// Smaller is better.
    fn order(&self) -> (u8, u8, u32) {
        let source_len = self.source.map_or(0, |source| source.prefix_len() + 1);
        let destination_len = self.destination.prefix_len();
        (u8::MAX - destination_len, u8::MAX - source_len, self.metric)
    }

    fn is_for(&self, dst: IpAddr, src: Option<IpAddr>) -> bool {
        self.destination.contains(dst)
            && self
                .source
                .is_none_or(|source| src.is_some_and(|src| source.contains(src)))
    }

    fn is_same(&self, other: &Self) -> bool {
        (self.destination, self.source, self.via) == (other.destination, other.source, other.via)
    }
}

/// All routes, best first.
#[derive(Default)]
pub(crate) struct Routes {
    routes: Vec<Route>,
}

impl Routes {
    /// Adds a route, or gives the same one its new metric and lifetime. Says whether
    /// packets may now go another way.
    ///
    /// Errors: `NoBuffers` if its origin has as many as it may.
    pub fn add(&mut self, route: Route) -> Result<bool, Error> {
        if let Some(old) = self.routes.iter_mut().find(|old| old.is_same(&route))
            && old.order() == route.order()
        {
            *old = route;
            return Ok(false);
        }
        self.routes.retain(|old| !old.is_same(&route));
        let limit = match route.origin {
            RouteOrigin::Advert => ADVERTS_MAX,
            RouteOrigin::Static | RouteOrigin::Address => STATIC_MAX,
        };
        let is_default = |route: &Route| route.destination.prefix_len() == 0;
        let is_kin = |old: &&Route| {
            old.origin == route.origin
                && (route.origin != RouteOrigin::Advert || is_default(old) == is_default(&route))
        };
        if self.routes.iter().filter(is_kin).count() >= limit {
            return Err(Error::NoBuffers);
        }
        self.routes.try_reserve(1).map_err(|_| Error::NoBuffers)?;
        let order = route.order();
        let at = self.routes.partition_point(|old| old.order() <= order);
        self.routes.insert(at, route);
        Ok(true)
    }

    /// Takes routes away; says whether there were any.
    pub fn remove(&mut self, mut is_gone: impl FnMut(&Route) -> bool) -> bool {
        let before = self.routes.len();
        self.routes.retain(|route| !is_gone(route));
        self.routes.len() < before
    }

    /// Takes expired routes away; says whether there were any.
    pub fn expire(&mut self, now: Instant) -> bool {
        self.remove(|route| route.expires <= now)
    }

    /// When the next route expires.
    pub fn next_deadline(&self) -> Option<Instant> {
        let ends = self.routes.iter().map(|route| route.expires);
        ends.filter(|end| *end < Instant::NEVER).min()
    }

    /// Where packets to `dst` go; before a source is chosen, `src` is `None`. Of several
    /// routers that are equally good, the one whose `rank` is highest (RFC 4861 6.3.6).
    pub fn lookup(
        &self,
        dst: IpAddr,
        src: Option<IpAddr>,
        rank: impl Fn(IpAddr) -> u8,
    ) -> Option<Via> {
        let at = self
            .routes
            .iter()
            .position(|route| route.is_for(dst, src))?;
        let best = &self.routes[at];
        let mut chosen = (best.via, None);
        let equals = self.routes[at..]
            .iter()
            .take_while(|route| route.order() == best.order());
        for route in equals {
            // The first of the highest, so that the choice does not wander.
            if let Via::Router(router) = route.via
                && route.is_for(dst, src)
                && Some(rank(router)) > chosen.1
            {
                chosen = (route.via, Some(rank(router)));
            }
        }
        Some(chosen.0)
    }

    /// Whether `addr` is a neighbour of ours.
    pub fn is_on_link(&self, addr: IpAddr) -> bool {
        self.lookup(addr, None, |_| 0) == Some(Via::OnLink)
    }

    /// Whether packets may be sent through `router`.
    pub fn uses(&self, router: IpAddr) -> bool {
        self.routes
            .iter()
            .any(|route| route.via == Via::Router(router))
    }

    pub fn iter(&self) -> impl Iterator<Item = &Route> {
        self.routes.iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ip(text: &str) -> IpAddr {
        text.parse().expect("an address")
    }

    fn prefix(text: &str) -> Prefix {
        let (addr, len) = text.split_once('/').expect("a slash");
        Prefix::new(ip(addr), len.parse().expect("a length")).expect("a prefix")
    }

    fn route(destination: &str, via: &str, metric: u32) -> Route {
        Route {
            destination: prefix(destination),
            source: None,
            via: Via::Router(ip(via)),
            metric,
            origin: RouteOrigin::Static,
            expires: Instant::NEVER,
        }
    }

    fn table(routes: &[Route]) -> Routes {
        let mut table = Routes::default();
        for route in routes {
            table.add(*route).expect("room");
        }
        table
    }

    #[test]
    fn the_longest_prefix_wins_whatever_its_metric() {
        let table = table(&[
            route("0.0.0.0/0", "10.0.0.1", 1),
            route("10.1.0.0/16", "10.0.0.2", 50),
            route("10.1.2.0/24", "10.0.0.3", 100),
            route("::/0", "fe80::1", 0),
        ]);
        let via = |dst| table.lookup(ip(dst), None, |_| 0);
        assert_eq!(via("10.1.2.3"), Some(Via::Router(ip("10.0.0.3"))));
        assert_eq!(via("10.1.9.9"), Some(Via::Router(ip("10.0.0.2"))));
        assert_eq!(via("192.0.2.1"), Some(Via::Router(ip("10.0.0.1"))));
        assert_eq!(via("2001:db8::1"), Some(Via::Router(ip("fe80::1"))));
    }

    #[test]
    fn a_route_of_the_source_goes_before_one_for_all() {
        let mut own = route("::/0", "fe80::2", 9);
        own.source = Some(prefix("2001:db8:2::/48"));
        let table = table(&[route("::/0", "fe80::1", 1), own]);
        let via = |src: Option<&str>| table.lookup(ip("2001:db8:9::1"), src.map(ip), |_| 0);
        assert_eq!(via(Some("2001:db8:2::5")), Some(own.via));
        let other = Some(Via::Router(ip("fe80::1")));
        assert_eq!((via(Some("2001:db8:1::5")), via(None)), (other, other));
    }

    #[test]
    fn a_reachable_router_is_preferred_to_an_equal_one() {
        let table = table(&[
            route("::/0", "fe80::1", 5),
            route("::/0", "fe80::2", 5),
            route("::/0", "fe80::3", 6),
        ]);
        let via = |reachable: &str| {
            let reachable = ip(reachable);
            table.lookup(ip("2001:db8::1"), None, |router| {
                u8::from(router == reachable)
            })
        };
        assert_eq!(via("fe80::2"), Some(Via::Router(ip("fe80::2"))));
        assert_eq!(
            via("fe80::3"),
            Some(Via::Router(ip("fe80::1"))),
            "metric first"
        );
    }

    #[test]
    fn a_flood_of_announcements_fills_only_its_own_share() {
        let mut table = table(&[route("0.0.0.0/0", "10.0.0.1", 1)]);
        let mut refused = 0;
        for index in 0..1000_u128 {
            let network = IpAddr::V6((0x2001_u128 << 112 | index << 64).into());
            let advert = Route {
                destination: Prefix::new(network, 64).expect("a prefix"),
                via: Via::OnLink,
                origin: RouteOrigin::Advert,
                expires: Instant::from_millis(5),
                ..route("::/0", "fe80::1", 1)
            };
            refused += usize::from(table.add(advert).is_err());
        }
        assert_eq!(refused, 1000 - ADVERTS_MAX);
        assert_eq!(table.add(route("10.9.0.0/16", "10.0.0.1", 1)), Ok(true));
        assert!(table.expire(Instant::from_millis(5)));
        assert_eq!((table.iter().count(), table.next_deadline()), (2, None));
    }

    #[test]
    fn adding_a_route_again_renews_it() {
        let mut table = table(&[route("::/0", "fe80::1", 5)]);
        assert_eq!(table.add(route("::/0", "fe80::1", 7)), Ok(true));
        assert_eq!(table.add(route("::/0", "fe80::1", 7)), Ok(false));
        assert_eq!(table.iter().map(|route| route.metric).sum::<u32>(), 7);
    }
}
