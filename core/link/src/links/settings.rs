//! Properties of links that exist.

use super::flows::limits_of;
use super::{Class, LinkError, Links, STUB_MTU};
use alloc::string::String;
use alloc::vec::Vec;

use crate::group::RingsWanted;
use crate::moderation::{Moderation, Throttling};
use crate::open::Hold;
use crate::props::{Facts, PropError, Property, Settings};
use crate::table::LinkId;

impl Links {
    /// What a link is by itself.
    pub fn facts(&self, id: LinkId) -> Option<Facts> {
        let link = self.link(id)?;
        let port = self.link(link.over)?.port.as_ref()?;
        let mtu_max = match (link.over == id, &port.card) {
            (false, _) => self.mtu_of(link.over),
            (true, Some(card)) => card.shape.mtu,
            (true, None) => STUB_MTU,
        };
        Some(Facts {
            mtu_max,
            speed_mbps: port.card.as_ref().map_or(0, |card| card.shape.speed_mbps),
            is_up: port.is_up,
            cpus: self.cpus,
        })
    }

    /// The MTU that holds: never larger than the port's.
    pub(super) fn mtu_of(&self, id: LinkId) -> u16 {
        let Some(facts) = self.facts(id) else {
            return 0;
        };
        let set = self.link(id).and_then(|link| link.settings.mtu);
        set.map_or(facts.mtu_max, |mtu| mtu.min(facts.mtu_max))
    }

    /// What a link has set.
    pub fn settings(&self, id: LinkId) -> Option<&Settings> {
        Some(&self.link(id)?.settings)
    }

    /// A property's VALUE column.
    pub fn show_prop(&self, id: LinkId, name: &str) -> Result<String, LinkError> {
        let property = named(name)?;
        let facts = self.facts(id).ok_or(LinkError::NotFound)?;
        let link = self.link(id).ok_or(LinkError::NotFound)?;
        Ok(link.settings.show(property, &facts))
    }

    /// Sets a property; on failure its value is unchanged.
    pub fn set_prop(&mut self, id: LinkId, name: &str, value: &str) -> Result<(), LinkError> {
        let property = named(name)?;
        let facts = self.facts(id).ok_or(LinkError::NotFound)?;
        let link = self.link(id).ok_or(LinkError::NotFound)?;
        let new = link.settings.with(property, value, &facts);
        self.apply(id, new.map_err(LinkError::Prop)?)
    }

    /// Sets a property back to its default.
    pub fn reset_prop(&mut self, id: LinkId, name: &str) -> Result<(), LinkError> {
        let property = named(name)?;
        let link = self.link(id).ok_or(LinkError::NotFound)?;
        let new = link.settings.without(property);
        self.apply(id, new.map_err(LinkError::Prop)?)
    }

    /// Moves rings and tells the card first, for they can be refused; the rest cannot.
    fn apply(&mut self, id: LinkId, new: Settings) -> Result<(), LinkError> {
        let link = self.link(id).ok_or(LinkError::NotFound)?;
        let throttling = link.settings.throttling;
        if new.cpus != link.settings.cpus && link.class == Class::Etherstub {
            return Err(LinkError::WrongClass);
        }
        if new.rx_rings != link.settings.rx_rings {
            self.replace_rings(id, new.rx_rings)?;
        }
        if new.throttling != throttling {
            self.throttle(id, new.throttling)?;
        }
        let link = self.link_mut(id).ok_or(LinkError::NotFound)?;
        let (over, old_limits) = (link.over, link.limits.clone());
        if new.maxbw != link.settings.maxbw {
            link.limits = limits_of(new.maxbw);
        }
        let old = core::mem::replace(&mut link.settings, new);
        let told = self.sync_listening(over);
        if let Some(link) = self.link_mut(id) {
            if told.is_err() {
                (link.settings, link.limits) = (old, old_limits);
            }
            let methods = link.settings.methods();
            link.learner.keep_only(methods);
        }
        self.publish(over);
        told
    }

    /// Of a card's own link. The spacing of an adaptive one is the shell's to choose; it begins
    /// without any.
    fn throttle(&mut self, id: LinkId, wanted: Throttling) -> Result<(), LinkError> {
        let class = self.link(id).ok_or(LinkError::NotFound)?.class;
        if class != Class::Phys {
            return Err(LinkError::WrongClass);
        }
        match wanted {
            Throttling::Adaptive => self.set_moderation(id, Moderation::default()),
            Throttling::Fixed(limit) => self.set_moderation(id, limit),
        }
    }

    /// Only while nobody uses the link: its frames change rings.
    fn replace_rings(&mut self, id: LinkId, wanted: RingsWanted) -> Result<(), LinkError> {
        let link = self.link(id).ok_or(LinkError::NotFound)?;
        if link.class != Class::Vnic {
            return Err(LinkError::WrongClass);
        }
        if link.hold != Hold::Free {
            return Err(LinkError::InUse);
        }
        let (over, mac) = (link.over, link.mac);
        let Some(card) = self.card_mut(over) else {
            return Ok(());
        };
        let placed = card.placement.replace(&mut *card.nic, mac, wanted);
        placed.map(drop).map_err(LinkError::Place)
    }

    /// All properties of a link with their values, in the order of tools.
    pub fn show_props(&self, id: LinkId) -> Result<Vec<(Property, String)>, LinkError> {
        let facts = self.facts(id).ok_or(LinkError::NotFound)?;
        let link = self.link(id).ok_or(LinkError::NotFound)?;
        let all = Property::ALL.into_iter();
        Ok(all
            .map(|property| (property, link.settings.show(property, &facts)))
            .collect())
    }
}

fn named(name: &str) -> Result<Property, LinkError> {
    Property::named(name).ok_or(LinkError::Prop(PropError::Unknown))
}
