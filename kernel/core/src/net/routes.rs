//! The machine's IPv4 address and routes, which all shards share.
//!
//! They are changed in the first shard, by its DHCP client or an administrator. It publishes
//! them under a new version; each other shard compares versions whenever it is polled, and
//! follows. Neighbours that were set are the same everywhere too, but those that are learned
//! are each shard's own, so they are told to each (`plan`).
//! Lock order: a shard, then `ROUTES`.

use alloc::vec::Vec;
use core::net::Ipv4Addr;
use core::sync::atomic::{AtomicU32, Ordering};

use base::CpuId;
use inet::{Cidr, Route, RouteOrigin, Stack};
use mach::sync::Spin;

use super::shard;
use super::surroundings::Link;
use crate::sched::{Softirq, raise_on};

/// What a stack is told.
#[derive(PartialEq, Eq)]
struct Routes {
    address: Option<Cidr>,
    gateway: Option<Ipv4Addr>,
    /// Routes of IPv4 that were set.
    set: Vec<Route>,
}

static ROUTES: Spin<Routes> = Spin::new(Routes {
    address: None,
    gateway: None,
    set: Vec::new(),
});
/// Grows with each change.
static VERSION: AtomicU32 = AtomicU32::new(0);
/// The address alone, for whoever only compares; 0 for none.
static ADDRESS: AtomicU32 = AtomicU32::new(0);

/// Our address on the network.
pub(super) fn address() -> Option<Ipv4Addr> {
    match ADDRESS.load(Ordering::Relaxed) {
        0 => None,
        bits => Some(Ipv4Addr::from_bits(bits)),
    }
}

/// Keeps `stack` and what is published equal; a few instructions if nothing changed.
pub(super) fn follow(stack: &mut Stack, link: &mut Link) {
    if link.number == 0 {
        if link.routes_version != stack.routes_version() {
            link.routes_version = stack.routes_version();
            publish(stack);
        }
    } else if link.routes_version != VERSION.load(Ordering::Acquire) {
        adopt(stack, link);
    }
}

fn publish(stack: &Stack) {
    let is_set = |route: &&Route| {
        route.origin == RouteOrigin::Static && route.destination.network().is_ipv4()
    };
    let now = Routes {
        address: stack.address(),
        gateway: stack.gateway(),
        set: stack.routes().filter(is_set).copied().collect(),
    };
    let mut published = ROUTES.lock();
    if *published == now {
        return;
    }
    let bits = now.address.map_or(0, |own| own.addr().to_bits());
    ADDRESS.store(bits, Ordering::Relaxed);
    *published = now;
    VERSION.fetch_add(1, Ordering::Release);
    (1..shard::count()).for_each(|shard| raise_on(CpuId(shard.into()), Softirq::Net));
}

fn adopt(stack: &mut Stack, link: &mut Link) {
    let routes = ROUTES.lock();
    link.routes_version = VERSION.load(Ordering::Acquire);
    stack.set_address(routes.address);
    stack.set_gateway(routes.gateway);
    stack.remove_route(|_| true);
    for route in &routes.set {
        // The first shard's table has as much room.
        let added = stack.add_route(*route);
        debug_assert!(added.is_ok(), "a table of the same size had room");
    }
}
