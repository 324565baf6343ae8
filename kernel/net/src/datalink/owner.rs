//! A link whose frames a program takes in place of a network stack (`kernel/xdp`).
//!
//! While a link has an owner, its NIC gives what comes in its inbox to the owner and the stack sees
//! none of it; frames that the owner sends go by the lane, which checks what the link may claim and
//! keeps its limits. The stack may still send. When the owner lets go, frames are the stack's again.
//!
//! The owner runs where the NIC's shard would: at the end of a batch, with nothing locked. So it is
//! called once for all frames of a batch, and also when a link that was told to wait may go on.
//!
//! Lock order: what an owner locks comes before a lane and an inbox. It takes frames under its lock, so
//! that they keep their order whichever CPUs run it.

use alloc::sync::Arc;
use alloc::vec::Vec;

use link::counters::Kstat;
use link::lane::{complete_checksum, cut_coalesced};
use link::{RxChain, TxChain};
use sync::{Error, Result};

use super::nic::{self, Nic};
use crate::device::memory::packet_pool;
use crate::device::poll::BATCH_FRAMES_MAX;
use crate::stack::NetStack;

/// Who takes a link's frames.
pub trait FrameOwner: Send + Sync {
    /// Frames wait, or the link may go on sending. True if there is more to do.
    fn run(&self, link: &OwnedLink) -> bool;

    /// The link is gone, or another stack's: the owner gets no more of its frames.
    fn link_gone(&self);

    /// What it has counted since it has the link, by the names that `kstat` shows.
    fn counts(&self) -> Vec<Kstat>;
}

/// A link as its owner has it.
pub struct OwnedLink(Arc<Nic>);

impl OwnedLink {
    pub(super) fn of(nic: Arc<Nic>) -> Self {
        Self(nic)
    }

    /// Moves a batch of received frames to the end of `frames`, as they would be on the wire: a
    /// neighbour on the link may have left sums and cuts for a card that they never came to, and a card
    /// may have joined segments.
    pub fn take(&self, frames: &mut RxChain) {
        let inbox = &self.0.inbox;
        let mut lost = 0;
        inbox.drain(BATCH_FRAMES_MAX, &mut |mut frame| {
            let pool = packet_pool();
            let is_whole = complete_checksum(&mut frame, pool)
                && cut_coalesced(frame, pool, &mut |frame| frames.push(frame));
            lost += u64::from(!is_whole);
        });
        inbox.count_dropped(lost);
    }

    /// Sends frames; false if they are left because the link was told to wait. The owner
    /// [runs](FrameOwner::run) when it may go on.
    pub fn send(&self, frames: &mut TxChain) -> bool {
        self.0.send(frames)
    }
}

/// The hold on a link; its drop gives the frames back to the stack.
pub struct Ownership {
    link: OwnedLink,
    owner: Arc<dyn FrameOwner>,
}

impl Ownership {
    /// The link.
    pub fn link(&self) -> &OwnedLink {
        &self.link
    }
}

impl Drop for Ownership {
    fn drop(&mut self) {
        self.link.0.disown(&self.owner);
    }
}

/// Gives an interface's frames to `owner`.
///
/// Errors: `WrongDevice` without such an interface, `Unsupported` for one that is no link over the
/// card or an etherstub, `Busy` if it has an owner.
pub(super) fn own(
    of: &Arc<NetStack>,
    interface: u32,
    owner: Arc<dyn FrameOwner>,
) -> Result<Ownership> {
    of.interface(interface).ok_or(Error::WrongDevice)?;
    let nic = nic::find(of, interface).ok_or(Error::Unsupported)?;
    nic.own(owner.clone())?;
    let link = OwnedLink(nic);
    Ok(Ownership { link, owner })
}
