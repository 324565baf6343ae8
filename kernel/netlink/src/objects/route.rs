//! Routes: shown, looked up, set and taken away.

use core::net::IpAddr;

use netlink::{Dump, Flags, Progress, Writer};
use sync::Error;

use super::address::{EVERYWHERE, HOST, LINK, family_of, is_family, link_of};
use crate::answer::Refusal;
use crate::requester::Requester;
use net::plan::{self, Route, RouteKind, RouteOrigin};
use net::{CARD, NetStack};

/// `RT_TABLE_*`.
const MAIN: u32 = 254;
const LOCAL: u32 = 255;

/// `RTPROT_*`.
const BY_KERNEL: u8 = 2;
const BY_BOOT: u8 = 3;
const BY_ROUTER: u8 = 9;

/// `RTN_*`.
const UNICAST: u8 = 1;
const TO_US: u8 = 2;
const TO_EVERYBODY: u8 = 3;
const UNREACHABLE: u8 = 7;

/// `RTM_F_CLONED`: the answer to a question, not a line of the table.
const CLONED: u32 = 0x200;

fn kind_of(route: &Route) -> u8 {
    match route.kind {
        RouteKind::Unicast => UNICAST,
        RouteKind::Local => TO_US,
        RouteKind::Broadcast => TO_EVERYBODY,
        RouteKind::Unreachable => UNREACHABLE,
    }
}

fn table_of(route: &Route) -> u32 {
    match route.kind {
        RouteKind::Unicast | RouteKind::Unreachable => MAIN,
        RouteKind::Local | RouteKind::Broadcast => LOCAL,
    }
}

/// IPv6 routes have no scope.
fn scope_of(route: &Route) -> u8 {
    match (route.kind, route.gateway) {
        _ if route.destination.is_ipv6() => EVERYWHERE,
        (RouteKind::Local, _) => HOST,
        (RouteKind::Broadcast, _) | (RouteKind::Unicast, None) => LINK,
        (RouteKind::Unicast, Some(_)) | (RouteKind::Unreachable, _) => EVERYWHERE,
    }
}

/// A route as a message.
pub(crate) fn message(route: &Route) -> netlink::Route<'static> {
    netlink::Route {
        family: family_of(route.destination),
        destination_len: route.prefix_len,
        table: table_of(route),
        protocol: match route.origin {
            RouteOrigin::Address => BY_KERNEL,
            RouteOrigin::Set => BY_BOOT,
            RouteOrigin::Advert => BY_ROUTER,
        },
        scope: scope_of(route),
        kind: kind_of(route),
        destination: (route.prefix_len != 0).then_some(route.destination),
        link: Some(route.interface),
        gateway: route.gateway,
        metric: (route.metric != 0).then_some(route.metric),
        preferred_source: route.source,
        ..netlink::Route::default()
    }
}

/// Which routes a dump shows.
#[derive(Clone, Debug)]
pub(crate) struct DumpFilter {
    family: u8,
    table: Option<u32>,
    link: Option<u32>,
    /// The request is for routes that are remembered; we remember none.
    is_cached: bool,
}

impl DumpFilter {
    pub fn of(asked: &netlink::Route<'_>, is_strict: bool) -> Self {
        Self {
            family: asked.family,
            table: Some(asked.table).filter(|table| is_strict && *table != 0),
            link: asked.link.filter(|_| is_strict),
            is_cached: asked.flags & CLONED != 0,
        }
    }

    fn has(&self, route: &Route) -> bool {
        !self.is_cached
            && is_family(self.family, route.destination)
            && self.table.is_none_or(|table| table == table_of(route))
            && self.link.is_none_or(|link| link == route.interface)
    }

    pub fn fill(
        &self,
        stack: &NetStack,
        dump: &Dump,
        from: usize,
        to: &mut Writer<'_>,
    ) -> Progress {
        let all = plan::routes(stack);
        let wanted = all.iter().filter(|route| self.has(route));
        dump.fill(to, wanted.skip(from).map(message))
    }
}

/// Shows where a packet would go.
pub(crate) fn get(requester: &Requester<'_>, object: &netlink::Route<'_>) -> Result<(), Refusal> {
    let to = object.destination.ok_or(Error::Invalid)?;
    let way = plan::way_to(requester.stack(), to)?;
    let answer = netlink::Route {
        scope: EVERYWHERE,
        flags: CLONED,
        protocol: 0,
        destination: Some(to),
        user: object.user,
        ..message(&way)
    };
    Ok(requester.answer(&answer)?)
}

/// The route that a command means, if it is one that the stack can have.
fn parse(stack: &NetStack, object: &netlink::Route<'_>) -> Result<Route, Refusal> {
    let is_plain = object.nexthops.is_none() && object.source_len == 0 && object.mtu.is_none();
    if !is_plain || !matches!(object.kind, 0 | UNICAST) || !matches!(object.table, 0 | MAIN) {
        return Err(Refusal::new(
            Error::Unsupported,
            "Only plain routes of the main table",
        ));
    }
    let nowhere = match object.family {
        2 => IpAddr::V4(core::net::Ipv4Addr::UNSPECIFIED),
        10 => IpAddr::V6(core::net::Ipv6Addr::UNSPECIFIED),
        _ => return Err(Error::FamilyUnsupported.into()),
    };
    let link = object.link.map(|link| link_of(stack, link)).transpose()?;
    Ok(Route {
        destination: object.destination.unwrap_or(nowhere),
        prefix_len: object.destination_len,
        kind: RouteKind::Unicast,
        origin: RouteOrigin::Set,
        gateway: object.gateway,
        interface: link.map_or(CARD, |link| link.number),
        source: object.preferred_source,
        metric: object.metric.unwrap_or(0),
    })
}

/// Sets a route.
pub(crate) fn add(requester: &Requester<'_>, object: &netlink::Route<'_>) -> Result<(), Refusal> {
    let stack = requester.stack();
    let new = parse(stack, object)?;
    Ok(plan::add_route(stack, &new, requester.has(Flags::REPLACE))?)
}

/// Takes a route away.
pub(crate) fn remove(
    requester: &Requester<'_>,
    object: &netlink::Route<'_>,
) -> Result<(), Refusal> {
    let stack = requester.stack();
    Ok(plan::remove_route(stack, &parse(stack, object)?)?)
}
