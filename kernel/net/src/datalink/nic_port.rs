//! A NIC's way to its link: it sends by a lane, and receives from its inbox.

use alloc::sync::Arc;

use base::Instant;
use hal::{Capabilities, FramePort, PortCounters, Stall};
use link::lane::Place;
use link::links::{Class, LinkInfo};
use mbuf::{RxFrame, TxFrame};

use super::lanes::Lanes;
use super::nic::{self, Nic};
use super::wire;

/// The port of a NIC.
pub(super) struct NicPort {
    mac: [u8; 6],
    mtu: u16,
    capabilities: Capabilities,
    lanes: Arc<Lanes>,
    nic: Arc<Nic>,
    /// Where the link is in the lane's table, while its frames may pass the lane by.
    place: Option<Place>,
    /// The card was not told of all that passed.
    is_unannounced: bool,
}

impl NicPort {
    /// For the NIC of `link`, which sends by `lanes`.
    pub fn new(link: &LinkInfo, lanes: Arc<Lanes>, nic: Arc<Nic>) -> Self {
        Self {
            mac: link.mac.0,
            mtu: link.mtu,
            capabilities: capabilities(link, &lanes),
            lanes,
            nic,
            place: None,
            is_unannounced: false,
        }
    }
}

/// A NIC may leave to the card what the card does; on an etherstub nobody has to. Cards
/// do not look behind a VLAN's tag in the bytes.
fn capabilities(link: &LinkInfo, lanes: &Lanes) -> Capabilities {
    let of_card = lanes.capabilities();
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

impl FramePort for NicPort {
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
        let bytes = frame.chain.len();
        self.nic.learn_of_stack(&frame);
        let mut left = Some(frame);
        if let Some(place) = self.place {
            self.lanes.send_past(place, &mut left);
        }
        let Some(frame) = left else {
            self.is_unannounced = true;
            wire::others_sent(bytes);
            return Ok(());
        };
        let (sent, place) = self.lanes.send(self.nic.link, frame);
        self.place = place;
        sent
    }

    fn kick(&mut self) {
        if core::mem::take(&mut self.is_unannounced) {
            self.lanes.kick();
        }
    }

    fn receive(&mut self, budget: usize, sink: &mut dyn FnMut(RxFrame)) -> usize {
        self.nic.drain(budget, sink)
    }

    /// What a NIC sent is the card's to count.
    fn unsent(&mut self) -> usize {
        0
    }

    fn reclaim(&mut self) {}

    fn has_received(&mut self) -> bool {
        self.nic.waiting() != 0
    }

    /// Who polls the card sees to a NIC's frames, not an interrupt.
    fn arm(&mut self) -> bool {
        self.nic.waiting() != 0
    }

    fn disarm(&mut self) {}

    /// What a NIC did, its stack counts, but for what never came there.
    fn counters(&mut self) -> PortCounters {
        PortCounters {
            rx_ring_empty: self.nic.overflowed(),
            ..PortCounters::default()
        }
    }

    fn watch(&mut self, _: Instant) -> Option<Stall> {
        None
    }

    fn listen_to_all(&mut self, on: bool) {
        self.nic.listen_to_all(on);
    }
}

impl Drop for NicPort {
    fn drop(&mut self) {
        nic::port_dropped(&self.nic);
    }
}
