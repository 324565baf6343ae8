//! Frames that programs made themselves (`packet`).

use mbuf::{Chain, TxFrame};
use sync::{Error, Result};

use crate::device::poll::after_send;
use crate::device::steer;
use crate::stack::NetStack;
use crate::stack::interface::CARD;

impl NetStack {
    /// Gives an interface a frame, which sniffers have seen; the card by the calling CPU's ring.
    ///
    /// Errors: `NetworkDown` before there is a shard.
    pub fn send_frame(&self, interface: u32, frame: TxFrame) -> Result<()> {
        let hand_over = |_: &mut inet::Stack, link: &mut crate::stack::env::Link| {
            link.hand_over(frame);
            after_send(link);
        };
        let sent = match interface {
            CARD => self.with_shard(self.own(), hand_over),
            station => self.on_interface(station, hand_over),
        };
        sent.ok_or(Error::NetworkDown)
    }

    /// Sends a packet, from its IP header on, to this machine: to the shard that it is for.
    ///
    /// Errors: `NetworkDown` before there is a shard.
    pub fn send_to_ourselves(&self, packet: Chain) -> Result<()> {
        let shard = match self.loopback_count() {
            1 => 0,
            _ => steer::owner_of_packet(&packet),
        };
        self.in_shard(shard, |stack, link| {
            stack.loop_back(link, packet);
            after_send(link);
            Ok(())
        })
    }
}
