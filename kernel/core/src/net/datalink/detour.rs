//! What stands in the card's place while the link layer has something to do.

use alloc::boxed::Box;
use alloc::sync::Arc;

use hal::{Capabilities, FramePort};
use mbuf::{RxFrame, TxFrame};

use super::lanes::Lanes;
use crate::net::surroundings::Port;

/// The card's own link, as its stack sees it.
pub(super) struct Detour {
    lanes: Arc<Lanes>,
    mac: [u8; 6],
    mtu: u16,
    capabilities: Capabilities,
}

impl Detour {
    /// Puts a detour in the place of `card`, which the lane gets.
    pub fn install(lanes: Arc<Lanes>, card: &mut Port) {
        let detour = Self {
            mac: card.mac(),
            mtu: card.mtu(),
            capabilities: card.capabilities(),
            lanes: lanes.clone(),
        };
        lanes.put_card(core::mem::replace(card, Box::new(detour)));
    }
}

impl FramePort for Detour {
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
        self.lanes.send_own(frame)
    }

    /// The lane has told the card.
    fn kick(&mut self) {}

    fn receive(&mut self, budget: usize, sink: &mut dyn FnMut(RxFrame)) -> usize {
        self.lanes.receive(budget, sink)
    }

    fn unsent(&mut self) -> usize {
        self.lanes.unsent()
    }

    fn reclaim(&mut self) {
        self.lanes.with_card(FramePort::reclaim);
    }

    fn arm(&mut self) -> bool {
        self.lanes.arm()
    }

    fn disarm(&mut self) {
        self.lanes.with_card(FramePort::disarm);
    }
}
