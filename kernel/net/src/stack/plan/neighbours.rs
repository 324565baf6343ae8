//! Neighbours: stations on the links, and where frames to them go.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::net::IpAddr;

use inet::{NeighborEntry, NeighborState};
use sync::{Error, Result};

use crate::refusal::refused;
use crate::stack::NetStack;
use crate::stack::env::Link;
use crate::stack::interface::CARD;

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

impl Neighbour {
    /// Whether it was set by hand, and is never asked for.
    pub fn is_permanent(&self) -> bool {
        self.state == NeighborState::Permanent
    }
}

/// All neighbours, by address. Each shard knows those that it talks to; of what several know
/// of one, that is told which comes with a station.
pub fn neighbours(of: &NetStack) -> Vec<Neighbour> {
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
    for shard in 0..of.shard_count() {
        of.with_shard(shard, |stack, link| {
            let entries = stack.neighbor_entries();
            entries.for_each(|entry| put(link.interface, entry));
        });
    }
    all.into_values().collect()
}

/// Says where frames to a neighbour go.
///
/// Errors: `NoBuffers` if too many were set.
pub fn set_neighbour(of: &NetStack, interface: u32, ip: IpAddr, mac: [u8; 6]) -> Result<()> {
    let set = |stack: &mut inet::Stack, link: &mut Link| {
        stack
            .set_neighbor(link, ip, wire::MacAddr(mac))
            .map_err(refused)
    };
    let mut all = on_shards(of, interface, set);
    all.try_for_each(|set| set.unwrap_or(Err(Error::NetworkDown)))
}

/// Forgets a neighbour.
///
/// Errors: `NotFound`.
pub fn remove_neighbour(of: &NetStack, interface: u32, ip: IpAddr) -> Result<()> {
    let forget = |stack: &mut inet::Stack, _: &mut Link| stack.forget_neighbor(ip);
    let known = on_shards(of, interface, forget).filter(|is_known| *is_known == Some(true));
    match known.count() {
        0 => Err(Error::NotFound),
        _ => Ok(()),
    }
}

/// Calls `work` with each stack that has an interface's neighbours.
fn on_shards<R>(
    of: &NetStack,
    interface: u32,
    work: impl Fn(&mut inet::Stack, &mut Link) -> R,
) -> impl Iterator<Item = Option<R>> {
    let shards = match interface {
        CARD => 0..of.count(),
        _ => 0..1,
    };
    shards.map(move |shard| match interface {
        CARD => of.with_shard(shard, &work),
        station => of.on_interface(station, &work),
    })
}
