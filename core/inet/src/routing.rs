//! Routing, as administrators see and set it: sources of destinations, and the neighbour cache.

use core::net::IpAddr;

use wire::MacAddr;

use crate::env::Env;
use crate::error::Error;
use crate::neighbor::NeighborState;
use crate::stack::Stack;

/// A neighbour as tools see it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NeighborEntry {
    /// Its address.
    pub ip: IpAddr,
    /// Where frames to it go, once that is known.
    pub station: Option<MacAddr>,
    /// What is known of it.
    pub state: NeighborState,
}

impl Stack {
    /// The source address of packets to `dst`.
    ///
    /// Errors: as for a socket that connects there.
    pub fn source_for(&self, dst: IpAddr) -> Result<IpAddr, Error> {
        self.net.source_for(dst)
    }

    /// Changes whenever addresses, routes or neighbours' stations do.
    pub fn routes_version(&self) -> u32 {
        self.net.route_epoch
    }

    /// Whether packets for `addr` are for this host.
    pub fn is_local(&self, addr: IpAddr) -> bool {
        self.net.is_local(addr)
    }

    /// All neighbours of both families.
    pub fn neighbor_entries(&self) -> impl Iterator<Item = NeighborEntry> + '_ {
        let all = self.net.neighbors.iter().flat_map(|family| family.all());
        all.map(|(ip, state, station)| NeighborEntry { ip, station, state })
    }

    /// Says where frames to `ip` go from now on, whatever it may say itself.
    ///
    /// Errors: `NoBuffers` if too many were set.
    pub fn set_neighbor<E: Env>(
        &mut self,
        env: &mut E,
        ip: IpAddr,
        station: MacAddr,
    ) -> Result<(), Error> {
        let mut cx = self.context(env);
        let header = cx.net.link_header(station, ip);
        let learned = cx.net.neighbors_mut(ip).set(ip, header)?;
        cx.on_learned(learned);
        Ok(())
    }

    /// Forgets a neighbour, set or not; the next packet to it asks anew. False if there is
    /// none.
    pub fn forget_neighbor(&mut self, ip: IpAddr) -> bool {
        let Some(waiting) = self.net.neighbors_mut(ip).forget(ip) else {
            return false;
        };
        self.net.drop_unresolved(waiting);
        self.net.change_routes();
        true
    }
}
