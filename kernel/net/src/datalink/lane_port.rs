//! A port that leads to a lane: what stands in the card's place while the link layer has
//! something to do (the *detour*), and a NIC's way to its link.
//!
//! Both send by the lane, which tells the card. The card's stack takes from the lane what is
//! its own; a NIC has an inbox.

use alloc::boxed::Box;
use alloc::sync::Arc;

use base::Instant;
use hal::{Capabilities, FramePort, PortCounters, Stall};
use link::links::{Class, LinkInfo};
use mbuf::{RxFrame, TxFrame};

use super::lanes::Lanes;
use super::nic::{self, Nic};
use crate::stack::env::Port;

/// Whose port it is.
enum Owner {
    /// The card's own stack's.
    Card,
    /// A NIC's.
    Nic(Arc<Nic>),
}

/// A port behind which there is a lane.
pub(super) struct LanePort {
    mac: [u8; 6],
    mtu: u16,
    capabilities: Capabilities,
    lanes: Arc<Lanes>,
    owner: Owner,
}

impl LanePort {
    /// Puts a detour in the place of `card`, which the lane gets.
    pub fn install(lanes: Arc<Lanes>, card: &mut Port) {
        let detour = Self {
            mac: card.mac(),
            mtu: card.mtu(),
            capabilities: card.capabilities(),
            lanes: lanes.clone(),
            owner: Owner::Card,
        };
        lanes.put_card(core::mem::replace(card, Box::new(detour)));
    }

    /// For the NIC of `link`, which sends by `lanes`.
    pub fn of_nic(link: &LinkInfo, lanes: Arc<Lanes>, nic: Arc<Nic>) -> Self {
        Self {
            mac: link.mac.0,
            mtu: link.mtu,
            capabilities: capabilities(link, &lanes),
            lanes,
            owner: Owner::Nic(nic),
        }
    }
}

/// A NIC may leave to the card what the card does; on an etherstub nobody has to. Cards
/// do not look behind a VLAN's tag in the bytes.
fn capabilities(link: &LinkInfo, lanes: &Lanes) -> Capabilities {
    let of_card = lanes.with_card(|card| card.capabilities());
    let is_tagged = link.class == Class::Vlan || link.vid.is_some();
    if is_tagged && !of_card.is_some_and(|card| card.tags) {
        return Capabilities::default();
    }
    of_card.unwrap_or(Capabilities {
        checksum: true,
        tso4: true,
        tso6: true,
        guest_checksum: true,
        guest_coalesce: true,
        tags: true,
    })
}

impl FramePort for LanePort {
    fn mac(&self) -> [u8; 6] {
        self.mac
    }

    fn mtu(&self) -> u16 {
        self.mtu
    }

    fn capabilities(&self) -> Capabilities {
        self.capabilities
    }

    fn transmit(&mut self, frame: TxFrame) -> Result<(), TxFrame> {
        match &self.owner {
            Owner::Card => self.lanes.send_own(frame),
            Owner::Nic(nic) => self.lanes.send(nic.link, frame),
        }
    }

    fn kick(&mut self) {
        self.lanes.kick();
    }

    fn receive(&mut self, budget: usize, sink: &mut dyn FnMut(RxFrame)) -> usize {
        match &self.owner {
            Owner::Card => self.lanes.receive(budget, sink),
            Owner::Nic(nic) => nic.inbox.drain(budget, sink),
        }
    }

    /// What a NIC sent is the card's to count.
    fn unsent(&mut self) -> usize {
        match &self.owner {
            Owner::Card => self.lanes.unsent(),
            Owner::Nic(_) => 0,
        }
    }

    fn reclaim(&mut self) {
        if let Owner::Card = self.owner {
            self.lanes.with_card(FramePort::reclaim);
        }
    }

    fn has_received(&mut self) -> bool {
        match &self.owner {
            Owner::Card => self.lanes.has_received(),
            Owner::Nic(nic) => nic.inbox.len() != 0,
        }
    }

    fn listen_to_all(&mut self, on: bool) {
        if let Owner::Nic(nic) = &self.owner {
            nic.listen_to_all(on);
        }
    }

    /// Who polls the card sees to a NIC's frames, not an interrupt.
    fn arm(&mut self) -> bool {
        match &self.owner {
            Owner::Card => self.lanes.arm(),
            Owner::Nic(nic) => nic.inbox.len() != 0,
        }
    }

    fn disarm(&mut self) {
        if let Owner::Card = self.owner {
            self.lanes.with_card(FramePort::disarm);
        }
    }

    /// What a NIC did, its stack counts, but for what never came there.
    fn counters(&mut self) -> PortCounters {
        match &self.owner {
            Owner::Card => {
                let of_card = self.lanes.with_card(FramePort::counters);
                of_card.unwrap_or_default()
            }
            Owner::Nic(nic) => PortCounters {
                rx_ring_empty: nic.inbox.dropped(),
                ..PortCounters::default()
            },
        }
    }

    fn watch(&mut self, now: Instant) -> Option<Stall> {
        match self.owner {
            Owner::Card => self.lanes.with_card(|card| card.watch(now))?,
            Owner::Nic(_) => None,
        }
    }
}

impl Drop for LanePort {
    fn drop(&mut self) {
        if let Owner::Nic(nic) = &self.owner {
            nic::port_dropped(nic);
        }
    }
}
