//! Frames that programs made themselves (`packet`).

use mbuf::{Chain, TxFrame};

use super::handle::in_shard;
use super::interface::{CARD, on_interface};
use super::poll::after_send;
use super::shard::with_shard;
use super::{shard, steer};
use crate::error::{Error, Result};

/// Gives an interface a frame, which sniffers have seen; the card by the calling CPU's ring.
///
/// Errors: `NetworkDown` before there is a stack.
pub fn send_frame(interface: u32, frame: TxFrame) -> Result<()> {
    let hand_over = |_: &mut inet::Stack, link: &mut super::surroundings::Link| {
        link.hand_over(frame);
        after_send(link);
    };
    let sent = match interface {
        CARD => with_shard(shard::own(), hand_over),
        station => on_interface(station, hand_over),
    };
    sent.ok_or(Error::NetworkDown)
}

/// Sends a packet, from its IP header on, to this machine: to the shard that it is for.
///
/// Errors: `NetworkDown` before there is a stack.
pub fn send_to_ourselves(packet: Chain) -> Result<()> {
    in_shard(steer::owner_of_packet(&packet), |stack, link| {
        stack.loop_back(link, packet);
        after_send(link);
        Ok(())
    })
}
