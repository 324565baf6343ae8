//! A station's port: frames go to the lane, and come from an inbox.

use alloc::sync::Arc;

use hal::{Capabilities, FramePort};
use link::LinkId;
use link::links::{Class, LinkInfo};
use mbuf::{RxFrame, TxFrame};

use super::inbox::Inbox;
use super::lanes::Lanes;

/// A station's way to its link.
pub(super) struct StationPort {
    mac: [u8; 6],
    mtu: u16,
    capabilities: Capabilities,
    link: LinkId,
    lanes: Arc<Lanes>,
    inbox: Arc<Inbox>,
}

impl StationPort {
    /// For the station of `link`, which sends by `lanes`.
    pub fn new(link: &LinkInfo, lanes: Arc<Lanes>, inbox: Arc<Inbox>) -> Self {
        Self {
            mac: link.mac.0,
            mtu: link.mtu,
            capabilities: capabilities(link, &lanes),
            link: link.id,
            lanes,
            inbox,
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

impl FramePort for StationPort {
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
        self.lanes.send(self.link, frame)
    }

    /// The lane has told the card.
    fn kick(&mut self) {}

    fn receive(&mut self, budget: usize, sink: &mut dyn FnMut(RxFrame)) -> usize {
        let mut count = 0;
        while count < budget
            && let Some(frame) = self.inbox.take()
        {
            sink(frame);
            count += 1;
        }
        count
    }

    fn unsent(&mut self) -> usize {
        0
    }

    fn reclaim(&mut self) {}

    /// The timer sees to it, not an interrupt.
    fn arm(&mut self) -> bool {
        self.inbox.len() != 0
    }

    fn disarm(&mut self) {}
}
