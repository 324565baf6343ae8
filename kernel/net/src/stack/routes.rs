//! A stack's IPv4 address and routes, which all its shards share.
//!
//! They are changed in the first shard, by its DHCP client or an administrator. It publishes
//! them under a new version; each other shard of the card compares versions whenever it is
//! polled, and follows. Neighbours that were set are the same everywhere too, but those that are
//! learned are each shard's own, so they are told to each (`plan`).
//! Lock order: a shard, then `Published::routes`.

use alloc::vec::Vec;
use core::net::Ipv4Addr;
use core::sync::atomic::{AtomicU32, Ordering};

use base::CpuId;
use inet::{Cidr, Route, RouteOrigin, Stack};
use mach::sync::Spin;
use sched::{Softirq, raise_on};

use super::env::Link;

/// What a shard is told.
#[derive(PartialEq, Eq)]
struct Routes {
    address: Option<Cidr>,
    gateway: Option<Ipv4Addr>,
    /// Routes of IPv4 that were set.
    set: Vec<Route>,
}

/// The first shard's address and routes, for the others.
pub(crate) struct Published {
    routes: Spin<Routes>,
    /// Grows with each change.
    version: AtomicU32,
    /// The address alone, for whoever only compares; 0 for none.
    address: AtomicU32,
}

impl Published {
    pub(crate) const fn new() -> Self {
        Self {
            routes: Spin::new(Routes {
                address: None,
                gateway: None,
                set: Vec::new(),
            }),
            version: AtomicU32::new(0),
            address: AtomicU32::new(0),
        }
    }

    /// The card's address on its network.
    pub(crate) fn address(&self) -> Option<Ipv4Addr> {
        match self.address.load(Ordering::Relaxed) {
            0 => None,
            bits => Some(Ipv4Addr::from_bits(bits)),
        }
    }

    fn publish(&self, stack: &Stack, shards: u16) {
        let is_set = |route: &&Route| {
            route.origin == RouteOrigin::Static && route.destination.network().is_ipv4()
        };
        let now = Routes {
            address: stack.address(),
            gateway: stack.gateway(),
            set: stack.routes().filter(is_set).copied().collect(),
        };
        let mut published = self.routes.lock();
        if *published == now {
            return;
        }
        let bits = now.address.map_or(0, |own| own.addr().to_bits());
        self.address.store(bits, Ordering::Relaxed);
        *published = now;
        self.version.fetch_add(1, Ordering::Release);
        (1..shards).for_each(|shard| raise_on(CpuId(shard.into()), Softirq::Net));
    }

    fn adopt(&self, stack: &mut Stack, link: &mut Link) {
        let routes = self.routes.lock();
        link.routes_version = self.version.load(Ordering::Acquire);
        stack.set_address(routes.address);
        stack.set_gateway(routes.gateway);
        stack.remove_route(|_| true);
        for route in &routes.set {
            // The first shard's table has as much room.
            let added = stack.add_route(*route);
            debug_assert!(added.is_ok(), "a table of the same size had room");
        }
    }
}

/// Keeps what a shard of the card has and what is published equal; a few instructions if nothing
/// changed. `shards` is how many there are.
pub(crate) fn follow(stack: &mut Stack, link: &mut Link, shards: u16) {
    if link.number == 0 {
        if link.routes_version != stack.routes_version() {
            link.routes_version = stack.routes_version();
            link.shared.routes.publish(stack, shards);
        }
    } else if link.routes_version != link.shared.routes.version.load(Ordering::Acquire) {
        let shared = link.shared.clone();
        shared.routes.adopt(stack, link);
    }
}
