//! Frames that programs made themselves (`packet`).

use mbuf::{Chain, TxFrame};

use super::handle::in_shard;
use super::poll::after_send;
use super::{shard, steer};
use crate::error::Result;

/// Gives the card a frame, which sniffers have seen, by the calling CPU's ring.
///
/// Errors: `NetworkDown` before there is a stack.
pub fn send_frame(frame: TxFrame) -> Result<()> {
    in_shard(shard::own(), |_, link| {
        link.hand_over(frame);
        after_send(link);
        Ok(())
    })
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
