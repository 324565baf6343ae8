//! A stack's addresses and routes, which all its shards share.
//!
//! They are changed in the first shard, by its DHCP client, by its IPv6 or an administrator. It
//! publishes them under a new version; each other shard of the card compares versions whenever it
//! is polled, and follows. Neighbours that were set are the same everywhere too, but those that are
//! learned are each shard's own, so they are told to each (`plan`).
//! Lock order: a shard or a ring, then `Published::routes`.

use alloc::vec::Vec;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use inet::{Cidr, Ipv6Snapshot, Route, RouteOrigin, Stack};
use mach::sync::Spin;

use super::env::Link;
use crate::device::runners;

/// What a shard is told.
#[derive(PartialEq, Eq)]
struct Routes {
    address: Option<Cidr>,
    gateway: Option<Ipv4Addr>,
    /// Routes of both families that were set.
    set: Vec<Route>,
    /// Addresses and other routes of IPv6, if it runs.
    v6: Option<Ipv6Snapshot>,
}

impl Routes {
    const NONE: Self = Self {
        address: None,
        gateway: None,
        set: Vec::new(),
        v6: None,
    };

    fn of(stack: &Stack) -> Self {
        let is_set = |route: &&Route| route.origin == RouteOrigin::Static;
        Self {
            address: stack.address(),
            gateway: stack.gateway(),
            set: stack.routes().filter(is_set).copied().collect(),
            v6: stack.ipv6_snapshot(),
        }
    }
}

/// An address of IPv6 for whoever only compares; zeros for none. One that is read while it
/// changes leads a datagram to another shard than its answers, once.
struct Source6([AtomicU64; 2]);

impl Source6 {
    const fn new() -> Self {
        Self([AtomicU64::new(0), AtomicU64::new(0)])
    }

    fn store(&self, addr: Option<Ipv6Addr>) {
        let bits = addr.map_or(0, Ipv6Addr::to_bits);
        for (part, bits) in self.0.iter().zip([(bits >> 64) as u64, bits as u64]) {
            part.store(bits, Ordering::Relaxed);
        }
    }

    fn load(&self) -> Option<Ipv6Addr> {
        let parts = self.0.each_ref();
        let [high, low] = parts.map(|part| u128::from(part.load(Ordering::Relaxed)));
        let addr = Ipv6Addr::from_bits(high << 64 | low);
        Some(addr).filter(|addr| !addr.is_unspecified())
    }
}

/// The first shard's addresses and routes, for the others.
pub(crate) struct Published {
    routes: Spin<Routes>,
    /// Grows with each change.
    version: AtomicU32,
    /// The address of IPv4 alone, for whoever only compares; 0 for none.
    address: AtomicU32,
    /// The same of IPv6 where there is no choice: of what leaves the link, of what does not.
    only_beyond: Source6,
    only_on_link: Source6,
}

impl Published {
    pub(crate) const fn new() -> Self {
        Self {
            routes: Spin::new(Routes::NONE),
            version: AtomicU32::new(0),
            address: AtomicU32::new(0),
            only_beyond: Source6::new(),
            only_on_link: Source6::new(),
        }
    }

    /// The card's address on its network.
    pub(crate) fn address(&self) -> Option<Ipv4Addr> {
        match self.address.load(Ordering::Relaxed) {
            0 => None,
            bits => Some(Ipv4Addr::from_bits(bits)),
        }
    }

    /// Whether the card has an address.
    pub(crate) fn has(&self, addr: IpAddr) -> bool {
        match addr {
            IpAddr::V4(addr) => self.address() == Some(addr),
            IpAddr::V6(addr) => {
                let routes = self.routes.lock();
                routes.v6.as_ref().is_some_and(|v6| v6.has(addr))
            }
        }
    }

    /// The only address from which the card can send to `to`; `None` if there are several, or none.
    pub(crate) fn only_source_v6(&self, to: Ipv6Addr) -> Option<Ipv6Addr> {
        match to.is_unicast_link_local() {
            true => self.only_on_link.load(),
            false => self.only_beyond.load(),
        }
    }

    /// The address from which the card sends to `to`.
    pub(crate) fn source_v6(&self, to: Ipv6Addr) -> Option<Ipv6Addr> {
        self.routes.lock().v6.as_ref()?.source_for(to)
    }

    fn publish(&self, stack: &Stack, shards: u16) {
        let now = Routes::of(stack);
        let mut published = self.routes.lock();
        if *published == now {
            return;
        }
        let bits = now.address.map_or(0, |own| own.addr().to_bits());
        self.address.store(bits, Ordering::Relaxed);
        for (only, on_link) in [(&self.only_beyond, false), (&self.only_on_link, true)] {
            only.store(now.v6.as_ref().and_then(|v6| v6.only_source(on_link)));
        }
        *published = now;
        self.version.fetch_add(1, Ordering::Release);
        (1..shards).for_each(runners::call);
    }

    fn adopt(&self, stack: &mut Stack, link: &mut Link) {
        let routes = self.routes.lock();
        link.routes_version = self.version.load(Ordering::Acquire);
        // Each of these forgets neighbours.
        if stack.address() != routes.address {
            stack.set_address(routes.address);
        }
        if stack.gateway() != routes.gateway {
            stack.set_gateway(routes.gateway);
        }
        stack.follow_ipv6(routes.v6.as_ref());
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
