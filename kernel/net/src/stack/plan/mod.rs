//! Addresses, routes and neighbours in one shape for both families, to be shown and changed.
//!
//! The stack keeps what its packets need; here it becomes what `ip` shows. What follows from
//! an address (the route to its network, those to ourselves) is not stored anywhere.
//! Not here: numbers and layouts of netlink (`netlink`).

mod addresses;
mod neighbours;
mod route_changes;
mod routes;

use alloc::vec::Vec;

pub use addresses::{Address, add_address, addresses, broadcast, remove_address};
pub use neighbours::{Neighbour, neighbours, remove_neighbour, set_neighbour};
pub use route_changes::{add_route, remove_route};
pub use routes::{Route, RouteKind, RouteOrigin, routes, way_to};

use sync::{Error, Result};

use super::NetStack;
use super::env::Link;
use super::interface::{Interface, InterfaceFlags};
use crate::stack::interface::{CARD, LOOPBACK};

/// All that listeners to changes can hear of.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Plan {
    /// All interfaces, loopback among them.
    pub links: Vec<LinkState>,
    /// Of all interfaces.
    pub addresses: Vec<Address>,
    /// Of both tables.
    pub routes: Vec<Route>,
    /// On all links.
    pub neighbours: Vec<Neighbour>,
}

/// What of an interface changes without traffic.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LinkState {
    /// Its number, name, station and MTU.
    pub interface: Interface,
    /// What it is and does.
    pub flags: InterfaceFlags,
    /// How many want all its frames.
    pub promiscuity: u32,
}

fn links(of: &NetStack) -> Vec<LinkState> {
    let state = |interface: Interface| LinkState {
        flags: of.flags(&interface),
        promiscuity: of.promiscuity(&interface),
        interface,
    };
    of.interfaces().into_iter().map(state).collect()
}

/// Everything at once.
pub fn plan(of: &NetStack) -> Plan {
    Plan {
        links: links(of),
        addresses: addresses(of),
        routes: routes(of),
        neighbours: neighbours(of),
    }
}

/// Shows the shards behind all interfaces but loopback.
fn each_link(of: &NetStack, mut look: impl FnMut(&Interface, &mut inet::Stack)) {
    let all = of.interfaces().into_iter();
    for interface in all.filter(|interface| interface.number != LOOPBACK) {
        of.on_interface(interface.number, |stack, _| look(&interface, stack));
    }
}

/// Changes an interface's stack; the card's first shard, which the others follow.
fn change(
    of: &NetStack,
    interface: u32,
    work: impl FnOnce(&mut inet::Stack, &mut Link) -> Result<()>,
) -> Result<()> {
    let changed = of.on_interface(interface, |stack, link| {
        work(stack, link)?;
        if interface == CARD {
            super::routes::follow(stack, link, of.count());
        }
        if of.has_further() {
            super::egress::publish(of, stack, link);
        }
        Ok(())
    });
    of.follow_addresses();
    changed.unwrap_or(Err(Error::NetworkDown))
}
