//! A port that leads to a lane: what stands in the card's place while the link layer has
//! something to do (the *detour*), and a station's way to its link.
//!
//! Both send by the lane, which tells the card. The card's stack takes from the lane what is
//! its own; a station has an inbox.

use alloc::boxed::Box;
use alloc::sync::Arc;

use base::Instant;
use hal::{Capabilities, FramePort, PortCounters, Stall};
use link::LinkId;
use link::links::{Class, LinkInfo};
use mbuf::{RxFrame, TxFrame};

use super::inbox::Inbox;
use super::lanes::Lanes;
use crate::stack::env::Port;

/// Whose port it is.
enum Owner {
    /// The card's own stack's.
    Card,
    /// The station's of this link, with its frames.
    Station(LinkId, Arc<Inbox>),
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

    /// For the station of `link`, which sends by `lanes` and whose frames come to `inbox`.
    pub fn of_station(link: &LinkInfo, lanes: Arc<Lanes>, inbox: Arc<Inbox>) -> Self {
        Self {
            mac: link.mac.0,
            mtu: link.mtu,
            capabilities: capabilities(link, &lanes),
            lanes,
            owner: Owner::Station(link.id, inbox),
        }
    }
}

/// A station may leave to the card what the card does; on an etherstub nobody has to. Cards
/// do not look behind a VLAN's tag.
fn capabilities(link: &LinkInfo, lanes: &Lanes) -> Capabilities {
    if link.class == Class::Vlan || link.vid.is_some() {
        return Capabilities::default();
    }
    let of_card = lanes.with_card(|card| card.capabilities());
    of_card.unwrap_or(Capabilities {
        checksum: true,
        tso4: true,
        tso6: true,
        guest_checksum: true,
        guest_coalesce: true,
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
            Owner::Station(link, _) => self.lanes.send(*link, frame),
        }
    }

    /// The lane has told the card.
    fn kick(&mut self) {}

    fn receive(&mut self, budget: usize, sink: &mut dyn FnMut(RxFrame)) -> usize {
        match &self.owner {
            Owner::Card => self.lanes.receive(budget, sink),
            Owner::Station(_, inbox) => {
                let frames = core::iter::from_fn(|| inbox.take()).take(budget);
                frames.map(sink).count()
            }
        }
    }

    /// What a station sent is the card's to count.
    fn unsent(&mut self) -> usize {
        match &self.owner {
            Owner::Card => self.lanes.unsent(),
            Owner::Station(..) => 0,
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
            Owner::Station(_, inbox) => inbox.len() != 0,
        }
    }

    /// A station's timer sees to its frames, not an interrupt.
    fn arm(&mut self) -> bool {
        match &self.owner {
            Owner::Card => self.lanes.arm(),
            Owner::Station(_, inbox) => inbox.len() != 0,
        }
    }

    fn disarm(&mut self) {
        if let Owner::Card = self.owner {
            self.lanes.with_card(FramePort::disarm);
        }
    }

    /// What a station did, its stack counts.
    fn counters(&mut self) -> PortCounters {
        let of_card = match self.owner {
            Owner::Card => self.lanes.with_card(FramePort::counters),
            Owner::Station(..) => None,
        };
        of_card.unwrap_or_default()
    }

    fn watch(&mut self, now: Instant) -> Option<Stall> {
        match self.owner {
            Owner::Card => self.lanes.with_card(|card| card.watch(now))?,
            Owner::Station(..) => None,
        }
    }
}
