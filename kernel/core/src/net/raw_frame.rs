//! Frames that programs made themselves (`packet`).

use mbuf::{Chain, TxFrame};

use super::handle::stack;
use super::poll::after_send;
use crate::error::Result;

/// Gives the card a frame, which sniffers have seen.
///
/// Errors: `NetworkDown` before there is a stack.
pub fn send_frame(frame: TxFrame) -> Result<()> {
    stack(|_, link| {
        link.hand_over(frame);
        after_send(link);
        Ok(())
    })
}

/// Sends a packet, from its IP header on, to this machine.
///
/// Errors: `NetworkDown` before there is a stack.
pub fn send_to_ourselves(packet: Chain) -> Result<()> {
    stack(|stack, link| {
        stack.loop_back(link, packet);
        after_send(link);
        Ok(())
    })
}
