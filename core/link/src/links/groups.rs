//! Whose addresses each group of a card has.

use alloc::vec::Vec;
use core::ops::Range;

use super::{LinkError, Links};
use crate::group::DEFAULT_GROUP;
use crate::table::LinkId;

/// A line of `dladm show-phys -H`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct GroupInfo {
    /// Its rings.
    pub rings: Range<u16>,
    /// Links whose addresses are there.
    pub clients: Vec<LinkId>,
}

impl GroupInfo {
    fn of(rings: Range<u16>) -> Self {
        Self {
            rings,
            clients: Vec::new(),
        }
    }
}

impl Links {
    /// The groups of a port's card, in its order; a card without groups is one group.
    /// Empty if the port has no card.
    pub fn groups(&self, port: LinkId) -> Result<Vec<GroupInfo>, LinkError> {
        let state = self.link(port).ok_or(LinkError::NotFound)?;
        let state = state.port.as_ref().ok_or(LinkError::WrongClass)?;
        let Some(card) = &state.card else {
            return Ok(Vec::new());
        };
        let mut groups: Vec<GroupInfo> = match &card.shape.groups[..] {
            [] => [GroupInfo::of(0..1)].into(),
            groups => groups
                .iter()
                .map(|group| GroupInfo::of(group.rings.clone()))
                .collect(),
        };
        for id in self.clients_of(port) {
            let place = self.link(id);
            let place = place.and_then(|link| card.placement.place_of(link.mac));
            let at = place.map_or(DEFAULT_GROUP, |place| place.group());
            if let Some(group) = groups.get_mut(usize::from(at)) {
                group.clients.push(id);
            }
        }
        Ok(groups)
    }
}
