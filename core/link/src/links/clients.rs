//! Clients of ports: VNICs and VLANs come, change and go.

use alloc::string::ToString;

use wire::MacAddr;

use super::names::default_vlan_name;
use super::{Class, Link, LinkError, Links, MacOrigin, MacSource, VnicSpec};
use crate::group::RingsWanted;
use crate::protect::learn::Learner;
use crate::table::LinkId;
use crate::vlan::VlanId;

impl Links {
    /// A station of its own on a port.
    pub fn create_vnic(&mut self, spec: &VnicSpec<'_>) -> Result<LinkId, LinkError> {
        self.check_name(spec.name)?;
        let mac = match spec.mac {
            MacSource::Given(mac) => mac,
            MacSource::Random { prefix, bits } => self.free_address(spec, prefix, bits),
        };
        if !mac.is_station() {
            return Err(LinkError::BadAddress);
        }
        let mut link = Link::new(spec.name, Class::Vnic, spec.over, mac, spec.vid);
        link.settings.rx_rings = spec.rings;
        if matches!(spec.mac, MacSource::Random { .. }) {
            link.mac_origin = MacOrigin::Random;
        }
        self.add_client(link)
    }

    /// The port's station in a VLAN; named after the port if no name is given.
    pub fn create_vlan(
        &mut self,
        name: Option<&str>,
        over: LinkId,
        vid: VlanId,
    ) -> Result<LinkId, LinkError> {
        let port = self.link(over).ok_or(LinkError::NotFound)?;
        if port.class != Class::Phys {
            return Err(LinkError::WrongClass);
        }
        let name = match name {
            Some(name) => name.to_string(),
            None => default_vlan_name(&port.name, vid).ok_or(LinkError::BadName)?,
        };
        self.check_name(&name)?;
        let mut link = Link::new(&name, Class::Vlan, over, port.mac, Some(vid));
        link.settings.rx_rings = RingsWanted::Software;
        self.add_client(link)
    }

    fn add_client(&mut self, link: Link) -> Result<LinkId, LinkError> {
        let (over, mac) = (link.over, link.mac);
        let port = self.link(over).ok_or(LinkError::NotFound)?;
        if port.port.is_none() {
            return Err(LinkError::WrongClass);
        }
        self.check_address(over, mac, link.vid)?;
        let wanted = link.settings.rx_rings;
        if let Some(card) = self.card_mut(over) {
            card.placement
                .add(&mut *card.nic, mac, wanted)
                .map_err(LinkError::Place)?;
        }
        let id = self.insert(link).inspect_err(|_| self.unplace(over, mac))?;
        if let Err(error) = self.sync_vlans(over) {
            self.links.remove(id.index, id.generation);
            self.unplace(over, mac);
            return Err(error);
        }
        self.publish(over);
        Ok(id)
    }

    fn unplace(&mut self, over: LinkId, mac: MacAddr) {
        if let Some(card) = self.card_mut(over) {
            card.placement.remove(&mut *card.nic, mac);
        }
    }

    /// Removes a link that nobody holds and nothing is over.
    pub fn delete(&mut self, id: LinkId) -> Result<(), LinkError> {
        let link = self.link(id).ok_or(LinkError::NotFound)?;
        let (over, mac) = (link.over, link.mac);
        let has_streams = self.streams.iter().any(|(_, _, stream)| stream.link == id);
        let has_clients = self.clients_of(id).any(|client| client != id);
        if has_streams || has_clients {
            return Err(LinkError::InUse);
        }
        let gone = self.links.remove(id.index, id.generation);
        if let Some(port) = gone.and_then(|link| link.port) {
            // Lanes look for a new table, find none and end.
            port.generation.raise();
        }
        if over != id {
            self.unplace(over, mac);
            // A card that keeps a VLAN sends us frames that nobody takes.
            let _ = self.sync_vlans(over);
            self.publish(over);
        }
        Ok(())
    }

    /// Gives a VNIC another address.
    pub fn set_address(&mut self, id: LinkId, mac: MacAddr) -> Result<(), LinkError> {
        let link = self.link(id).ok_or(LinkError::NotFound)?;
        if link.class != Class::Vnic {
            return Err(LinkError::WrongClass);
        }
        if !mac.is_station() {
            return Err(LinkError::BadAddress);
        }
        let (over, old, wanted) = (link.over, link.mac, link.settings.rx_rings);
        self.check_address(over, mac, link.vid)?;
        if let Some(card) = self.card_mut(over) {
            let placed = card.placement.add(&mut *card.nic, mac, wanted);
            placed.map_err(LinkError::Place)?;
        }
        self.unplace(over, old);
        if let Some(link) = self.link_mut(id) {
            link.mac = mac;
            link.mac_origin = MacOrigin::Fixed;
            // What was leased to the old address is not the new one's.
            link.learner = Learner::default();
        }
        self.publish(over);
        Ok(())
    }

    /// Two of some hundreds of VNICs draw the same three bytes now and then, so there are several to draw from
    /// `bits`. If all are taken it is the last.
    fn free_address(&self, spec: &VnicSpec<'_>, [a, b, c]: [u8; 3], bits: u64) -> MacAddr {
        let [d, e, f, g, h, i, j, k] = bits.to_be_bytes();
        let is_free = |mac: &MacAddr| self.check_address(spec.over, *mac, spec.vid).is_ok();
        let drawn = [[i, j, k], [f, g, h], [d, e, g]].map(|[x, y, z]| MacAddr([a, b, c, x, y, z]));
        drawn.into_iter().find(is_free).unwrap_or(drawn[2])
    }

    fn check_address(
        &self,
        over: LinkId,
        mac: MacAddr,
        vid: Option<VlanId>,
    ) -> Result<(), LinkError> {
        let mut clients = self.clients_of(over).filter_map(|id| self.link(id));
        match clients.any(|client| client.mac == mac && client.vid == vid) {
            true => Err(LinkError::AddressTaken),
            false => Ok(()),
        }
    }
}
