//! Several stacks on one port: one runs IPv6, the others follow it.
//!
//! The first stack asks whether an address is free, looks for routers, believes them, answers
//! neighbours and reports groups. What packets need of all that is a [`Ipv6Snapshot`]: addresses
//! with their states, routes, what the link takes, how long neighbours are trusted. The shell
//! shows a new one to the others whenever [`Stack::routes_version`] of the first has changed.
//!
//! A follower has no timer for what it was shown: what grows old does so in the first stack, and
//! the others hear of it. Neighbours are each stack's own. A follower asks for its own; the shell
//! shows it what neighbours say (`link::dispatch`), from which it learns without an answer.
//!
//! Not here: groups, whose packets all go to the first stack; paths, which each stack learns of
//! from errors about its own packets.

use alloc::vec::Vec;
use core::net::Ipv6Addr;

use base::Instant;

use super::{Ipv6, Ipv6Address, Ipv6Config, solicited_node};
use crate::neighbor::Timing;
use crate::route::{Route, RouteOrigin};
use crate::stack::Stack;

/// What a stack knows of IPv6 on its port, for others on the same port.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Ipv6Snapshot {
    config: Ipv6Config,
    addresses: Vec<Ipv6Address>,
    link_mtu: u16,
    is_off: bool,
    timing: Timing,
    /// All but those that the shell added, which it adds to the others itself.
    routes: Vec<Route>,
}

/// Whether a route comes and goes with IPv6.
fn is_own(route: &Route) -> bool {
    route.destination.network().is_ipv6() && route.origin != RouteOrigin::Static
}

impl Ipv6Address {
    /// As it is now, for somebody who hears of what becomes of it.
    fn as_shown(self) -> Self {
        Self {
            preferred_until: Instant::NEVER,
            valid_until: Instant::NEVER,
            probes_left: 0,
            due: Instant::NEVER,
            nonce: [0; 6],
            tries: 0,
            ..self
        }
    }
}

impl Ipv6Snapshot {
    /// Whether we use an address, or ask whether we may.
    pub fn has(&self, addr: Ipv6Addr) -> bool {
        self.addresses.iter().any(|own| own.addr == addr)
    }

    /// The source of packets to `dst`.
    pub fn source_for(&self, dst: Ipv6Addr) -> Option<Ipv6Addr> {
        match self.has(dst) {
            true => Some(dst),
            false => super::address::best_source(&self.addresses, dst),
        }
    }

    /// The source of all packets on the link, or of all that leave it, where there is no choice.
    pub fn only_source(&self, on_link: bool) -> Option<Ipv6Addr> {
        let used = self.addresses.iter().filter(|own| own.is_assigned());
        let mut fitting = used.filter(|own| own.addr.is_unicast_link_local() == on_link);
        let only = fitting.next()?.addr;
        fitting.next().is_none().then_some(only)
    }
}

impl Ipv6 {
    /// Whether questions for one of our addresses go to `group`, as they do for a member.
    pub(super) fn follows_group(&self, group: Ipv6Addr) -> bool {
        let mut own = self.addresses.iter();
        self.is_follower && own.any(|own| solicited_node(own.addr) == group)
    }
}

impl Stack {
    /// What the other stacks of this one's port are to know; `None` without IPv6.
    pub fn ipv6_snapshot(&self) -> Option<Ipv6Snapshot> {
        let v6 = self.net.v6.as_ref()?;
        let routes = self.net.routes.iter().filter(|route| is_own(route));
        Some(Ipv6Snapshot {
            config: v6.config,
            addresses: v6.iter().map(|own| own.as_shown()).collect(),
            link_mtu: v6.link_mtu,
            is_off: v6.is_off,
            timing: self.net.neighbors[1].timing(),
            routes: routes
                .map(|route| Route {
                    expires: Instant::NEVER,
                    ..*route
                })
                .collect(),
        })
    }

    /// Has from now on what another stack of the same port has, and nothing of its own.
    pub fn follow_ipv6(&mut self, shown: Option<&Ipv6Snapshot>) {
        let net = &mut self.net;
        net.routes.remove(is_own);
        net.v6 = shown.map(|shown| Ipv6 {
            addresses: shown.addresses.clone(),
            link_mtu: shown.link_mtu,
            is_off: shown.is_off,
            is_follower: true,
            ..Ipv6::new(shown.config)
        });
        if let Some(shown) = shown {
            net.neighbors[1].set_timing(shown.timing);
            for route in &shown.routes {
                // The other table has as much room.
                net.routes.add(*route).ok();
            }
        }
        net.change_routes();
    }
}
