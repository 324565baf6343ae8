//! Shows frames of a link that programs own to packet sockets, as a stack shows its own: the link's NIC asks once for
//! a batch who looks on, and nobody does as a rule.
//!
//! A frame that came is shown once, whatever queues get it, and not here if the stack gets it too, which shows it itself.
//! One that a program sends is shown when the lane has taken it.
//!
//! Lock order: what a queue's owner and the sorting of queues lock, then what `packet` says.

use alloc::sync::Arc;
use alloc::vec::Vec;

use link::TxChain;
use mach::mem::fallible::TryGrow;
use mbuf::{RxFrame, TxFrame};

use crate::packet;
use crate::stack::NetStack;

/// Who looks on.
pub(super) struct Onlooker {
    stack: Arc<NetStack>,
    /// The link's interface there.
    interface: u32,
}

impl Onlooker {
    pub fn new(stack: Arc<NetStack>, interface: u32) -> Self {
        Self { stack, interface }
    }

    /// The link has received a frame.
    pub fn received(&self, frame: &RxFrame) {
        packet::received(&self.stack.shared, self.interface, frame);
    }

    /// Frames as they are now, to be shown when they have left; none without memory.
    pub fn copies(frames: &TxChain) -> Vec<TxFrame> {
        let mut copies = Vec::new();
        if copies.make_room(frames.len()).is_ok() {
            copies.extend(frames.iter().map(copy));
        }
        copies
    }

    /// They have left.
    pub fn sent(&self, frames: &[TxFrame]) {
        let show = |frame| packet::sent(&self.stack.shared, self.interface, frame);
        frames.iter().for_each(show);
    }
}

fn copy(frame: &TxFrame) -> TxFrame {
    TxFrame {
        chain: frame.chain.clone(),
        checksum: frame.checksum,
        segment: frame.segment,
        tag: frame.tag,
    }
}
