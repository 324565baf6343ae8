//! Ports: cards and etherstubs become links.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;

use hal::{NicControl, NicError, NicShape, SpreadRule};
use wire::MacAddr;

use super::{CardState, Class, Link, LinkError, Links, Port};
use crate::group::Placement;
use crate::moderation::Moderation;
use crate::rss::{Indirection, Rss, Scope};
use crate::table::LinkId;

impl Links {
    /// A card becomes a link. Its rings are spread over evenly, as far as it can.
    pub fn attach(
        &mut self,
        name: &str,
        mut nic: Box<dyn NicControl + Send>,
        rss: &Rss,
    ) -> Result<LinkId, LinkError> {
        self.check_name(name)?;
        let shape = nic.shape();
        spread(&mut *nic, &shape, rss)?;
        let mac = MacAddr(shape.mac);
        let placement = Placement::new(&shape);
        let card = CardState {
            nic,
            shape,
            placement,
            is_listening: false,
            multicasts: Vec::new(),
            vlans: Vec::new(),
        };
        self.add_port(name, Class::Phys, mac, Some(card))
    }

    /// A port without a card.
    pub fn create_etherstub(&mut self, name: &str) -> Result<LinkId, LinkError> {
        self.check_name(name)?;
        self.add_port(name, Class::Etherstub, MacAddr::default(), None)
    }

    fn add_port(
        &mut self,
        name: &str,
        class: Class,
        mac: MacAddr,
        card: Option<CardState>,
    ) -> Result<LinkId, LinkError> {
        let nowhere = LinkId {
            index: u16::MAX,
            generation: 0,
        };
        let mut link = Link::new(name, class, nowhere, mac, None);
        link.port = Some(Port {
            card,
            generation: Arc::default(),
            table: Arc::default(),
            is_up: None,
        });
        let id = self.insert(link)?;
        if let Some(link) = self.link_mut(id) {
            link.over = id;
        }
        self.publish(id);
        Ok(id)
    }

    /// The card says that the wire is there, or not.
    pub fn set_up(&mut self, port: LinkId, is_up: bool) -> Result<(), LinkError> {
        let link = self.link_mut(port).ok_or(LinkError::NotFound)?;
        let port = link.port.as_mut().ok_or(LinkError::WrongClass)?;
        port.is_up = Some(is_up);
        Ok(())
    }

    /// Keeps the interrupts of all rings of a card apart.
    pub fn set_moderation(&mut self, port: LinkId, limit: Moderation) -> Result<(), LinkError> {
        self.link(port).ok_or(LinkError::NotFound)?;
        let card = self.card_mut(port).ok_or(LinkError::WrongClass)?;
        let rings = card
            .shape
            .groups
            .iter()
            .flat_map(|group| group.rings.clone());
        for ring in rings {
            let told = card.nic.set_moderation(ring, limit.spacing());
            told.map_err(LinkError::Nic)?;
        }
        Ok(())
    }
}

/// Spreads each group's flows over its rings, where the card can.
fn spread(nic: &mut dyn NicControl, shape: &NicShape, rss: &Rss) -> Result<(), LinkError> {
    for (group, rings) in (0..).zip(&shape.groups) {
        if rings.rings.len() < 2 {
            continue;
        }
        let table = Indirection::even(rings.rings.len() as u16);
        let rule = SpreadRule {
            key: &rss.key.0,
            table: table.entries(),
            ipv6: rss.scope == Scope::Ip,
            tcp_ports: rss.ports.tcp,
            udp_ports: rss.ports.udp,
        };
        match nic.spread(group, &rule) {
            Ok(()) | Err(NicError::Unsupported) => {}
            Err(error) => return Err(LinkError::Nic(error)),
        }
    }
    Ok(())
}
