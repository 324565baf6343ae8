//! What a virtual function asks its physical one for: groups, VLANs.
//!
//! At the start it hears its own address and broadcasts, and every VLAN that the card lets in.
//! It cannot hear more than thirty groups, or everything.

use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;

use base::Duration;
use hal::{
    LinkState, MulticastFilter, NicControl, NicError, NicShape, PromiscuousScope, Registers,
    RingGroup, SpreadRule, VlanFilter,
};
use intel::filters::multicast_bit;
use intel::link;

use super::MESSAGE;
use super::mailbox::Mailbox;
use crate::card::{Card, MTU};
use crate::control::{SPEED_MBPS, moderate};
use crate::message::{self, GROUPS_MAX, MAY_SEND, Message, SET_VLAN, WORDS, YES};

/// The only group of rings.
const GROUP: u16 = 0;
const VLANS: u16 = 4096;

/// What its pair leaves to the physical function. Owned by the control plane.
pub struct Control<R: Registers> {
    card: Arc<Card<R>>,
    mailbox: Mailbox,
    /// The VLANs that it is in.
    vlans: Vec<u16>,
}

impl<R: Registers> Control<R> {
    pub(super) fn new(card: Arc<Card<R>>, mailbox: Mailbox) -> Self {
        Self {
            card,
            mailbox,
            vlans: Vec::new(),
        }
    }

    /// Asks, and is told yes.
    fn ask(&mut self, request: &Message, refused: NicError) -> Result<(), NicError> {
        let answer = self.mailbox.ask(&self.card.registers, request);
        let answer = answer.map_err(|_| NicError::Failed)?;
        match answer[0] & !MAY_SEND == request[0] | YES {
            true => Ok(()),
            false => Err(refused),
        }
    }

    fn set_vlan(&mut self, id: u16, is_in: bool) -> Result<(), NicError> {
        let mut request = [0; WORDS];
        request[0] = message::with_detail(SET_VLAN, is_in.into());
        request[1] = id.into();
        self.ask(&request, NicError::FiltersFull)
    }
}

impl<R: Registers> NicControl for Control<R> {
    fn shape(&self) -> NicShape {
        NicShape {
            mac: self.card.mac,
            mtu: MTU,
            speed_mbps: SPEED_MBPS,
            groups: vec![RingGroup {
                rings: 0..1,
                filters: 1,
            }],
            can_poll: true,
        }
    }

    fn add_address(&mut self, group: u16, mac: [u8; 6]) -> Result<(), NicError> {
        match group == GROUP && mac == self.card.mac {
            true => Ok(()),
            false => Err(NicError::Unsupported),
        }
    }

    fn remove_address(&mut self, _: u16, _: [u8; 6]) {}

    fn set_promiscuous(&mut self, _: PromiscuousScope, on: bool) -> Result<(), NicError> {
        match on {
            true => Err(NicError::Unsupported),
            false => Ok(()),
        }
    }

    fn set_multicast(&mut self, filter: MulticastFilter<'_>) -> Result<(), NicError> {
        let MulticastFilter::Only(groups) = filter else {
            return Err(NicError::Unsupported);
        };
        let mut bits: Vec<u16> = groups.iter().map(multicast_bit).collect();
        bits.sort_unstable();
        bits.dedup();
        match bits.len() > GROUPS_MAX {
            true => Err(NicError::FiltersFull),
            false => self.ask(&message::with_groups(&bits), NicError::Unsupported),
        }
    }

    fn spread(&mut self, _: u16, _: &SpreadRule<'_>) -> Result<(), NicError> {
        Err(NicError::Unsupported)
    }

    fn set_moderation(&mut self, ring: u16, spacing: Duration) -> Result<(), NicError> {
        match ring {
            0 => moderate(&self.card.registers, MESSAGE, spacing),
            _ => return Err(NicError::Unsupported),
        }
        Ok(())
    }

    fn link(&mut self) -> Option<LinkState> {
        Some(link::state(&self.card.registers))
    }

    /// Joins before it leaves, so that VLANs which stay are never left; what is refused ends it.
    fn set_vlans(&mut self, filter: VlanFilter<'_>) -> Result<(), NicError> {
        let VlanFilter::Only(wanted) = filter else {
            return Err(NicError::Unsupported);
        };
        if wanted.iter().any(|id| *id >= VLANS) {
            return Err(NicError::Unsupported);
        }
        for id in wanted {
            if !self.vlans.contains(id) {
                self.set_vlan(*id, true)?;
                self.vlans.push(*id);
            }
        }
        while let Some(at) = self.vlans.iter().position(|id| !wanted.contains(id)) {
            let id = self.vlans.swap_remove(at);
            self.set_vlan(id, false)?;
        }
        Ok(())
    }
}
