//! A link whose frames a program takes in place of a network stack (`kernel/xdp`).
//!
//! While a link has an owner, its NIC gives what comes in its inbox to the owner and the stack sees
//! none of it; frames that the owner sends go by the lane, which checks what the link may claim and
//! keeps its limits. The stack may still send. When the owner lets go, frames are the stack's again.
//!
//! The owner runs where the NIC's shard would: at the end of a batch, with nothing locked. So it is
//! called once for all frames of a batch, and also when a link that was told to wait may go on. Several
//! owners have a queue each (`queues`).
//!
//! Lock order: what an owner locks comes before a lane and an inbox. It takes frames under its lock, so
//! that they keep their order whichever CPUs run it.

use alloc::sync::Arc;
use alloc::vec::Vec;

use link::counters::Kstat;
use link::lane::{complete_checksum, cut_coalesced};
use link::{RxChain, TxChain};
use mbuf::RxFrame;
use sync::{Error, Result};

use super::change;
use super::inbox::Inbox;
use super::nic::{self, Nic};
use super::queues::Redirected;
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

    /// Who waits for its frames, and how full its rings are.
    fn doorbell(&self) -> Doorbell;
}

/// How a program and its rings are.
#[derive(Clone, Copy, Debug, Default)]
pub struct Doorbell {
    /// The process that took the queue.
    pub process: u32,
    /// Somebody waits and is woken by the next frame.
    pub is_armed: bool,
    /// How often somebody was.
    pub wakes: u64,
    /// Entries of the rx, fill, tx and completion rings that the other end has not taken; none without that ring.
    pub filled: [Option<u32>; 4],
}

/// A link as its owner has it: all of it, or a queue of several.
pub struct OwnedLink {
    nic: Arc<Nic>,
    queue: u16,
    /// Where the queue's frames are; those of all of it are in the link's.
    part: Option<Arc<Inbox>>,
}

impl OwnedLink {
    /// All of it, whose owner has this queue.
    pub(super) fn whole(nic: Arc<Nic>, queue: u16) -> Self {
        let part = None;
        Self { nic, queue, part }
    }

    /// A queue whose frames are there.
    pub(super) fn part(nic: Arc<Nic>, queue: u16, inbox: Arc<Inbox>) -> Self {
        let part = Some(inbox);
        Self { nic, queue, part }
    }

    /// Moves a batch of received frames to the end of `frames`.
    pub fn take(&self, frames: &mut RxChain) {
        let mut push = |frame| frames.push(frame);
        match &self.part {
            None => take_as_on_wire(&self.nic, &mut push),
            Some(inbox) => {
                inbox.drain(BATCH_FRAMES_MAX, &mut push);
            }
        }
    }

    /// Sends frames; false if they are left because the link was told to wait. The owner
    /// [runs](FrameOwner::run) when it may go on.
    pub fn send(&self, frames: &mut TxChain) -> bool {
        self.nic.send(self.queue, frames)
    }

    /// Which queue.
    pub(super) fn queue(&self) -> u16 {
        self.queue
    }

    pub(super) fn is_of(&self, nic: &Arc<Nic>) -> bool {
        Arc::ptr_eq(&self.nic, nic)
    }
}

/// Gives a batch of a link's frames to `sink`, as they would be on the wire.
fn take_as_on_wire(nic: &Nic, sink: &mut dyn FnMut(RxFrame)) {
    let onlooker = nic.onlooker();
    let mut lost = 0;
    nic.inbox.drain(BATCH_FRAMES_MAX, &mut |frame| {
        if let Some(onlooker) = &onlooker {
            onlooker.received(&frame);
        }
        lost += u64::from(!as_on_wire(frame, sink));
    });
    nic.inbox.count_dropped(lost);
}

/// Gives a frame to `sink` as it would be on the wire: a neighbour on the link may have left sums and cuts for
/// a card that it never came to, and a card may have joined segments. False if something was lost.
pub(super) fn as_on_wire(mut frame: RxFrame, sink: &mut dyn FnMut(RxFrame)) -> bool {
    let pool = packet_pool();
    complete_checksum(&mut frame, pool) && cut_coalesced(frame, pool, &mut |frame| sink(frame))
}

/// The hold on a link; its drop gives the frames back to the stack.
pub struct Ownership {
    link: OwnedLink,
    owner: Arc<dyn FrameOwner>,
}

impl Ownership {
    /// Of an owner that the link has.
    pub(super) fn new(link: OwnedLink, owner: Arc<dyn FrameOwner>) -> Self {
        Self { link, owner }
    }

    /// The link.
    pub fn link(&self) -> &OwnedLink {
        &self.link
    }

    pub(super) fn owner(&self) -> &Arc<dyn FrameOwner> {
        &self.owner
    }

    /// Whether its queue gets new flows from now on, as it does at first.
    ///
    /// Errors: `NetworkDown` if the link is gone, `OutOfMemory`.
    pub fn take_new_flows(&self, is_taker: bool) -> Result<()> {
        let OwnedLink { nic, queue, .. } = &self.link;
        change::one_at_a_time(|| nic.take_new_flows(*queue, &self.owner, is_taker))
    }

    /// Gives a connection's flow, or a port, to another queue of the link or to its stack: frames of it that have come are
    /// in the queue's rings when this returns, and no more come.
    ///
    /// Errors: `NetworkDown` if the link is gone, `NotPermitted` by a filter, `WrongDevice` without such a queue,
    /// `NoBuffers` without a place for it.
    pub fn redirect(&self, what: Redirected, to: u16) -> Result<()> {
        let OwnedLink { nic, queue, .. } = &self.link;
        change::one_at_a_time(|| nic.redirect((*queue, &self.owner), what, to))
    }
}

impl Drop for Ownership {
    fn drop(&mut self) {
        self.link.nic.disown(self.link.queue, &self.owner);
    }
}

/// Whether a process took a queue of an interface, and has it still.
pub fn has_queue(of: &Arc<NetStack>, interface: u32, process: u32) -> bool {
    let link = nic::find(of, interface).map(|nic| nic.link);
    let doorbells = link.map_or_else(Vec::new, nic::doorbells);
    doorbells.iter().any(|(_, bell)| bell.process == process)
}

/// Gives a queue of an interface's frames to `owner`: all of them, while it is the only one; and flows that no queue
/// has, if it `is_taker`.
///
/// Errors: `WrongDevice` without such an interface, `Unsupported` for one that is no link over the
/// card or an etherstub, `Busy` if the queue has an owner, `Invalid` for one that cannot be, `OutOfMemory`.
pub(super) fn own(
    of: &Arc<NetStack>,
    (interface, queue): (u32, u16),
    owner: Arc<dyn FrameOwner>,
    is_taker: bool,
) -> Result<Ownership> {
    of.interface(interface).ok_or(Error::WrongDevice)?;
    let nic = nic::find(of, interface).ok_or(Error::Unsupported)?;
    nic.own(queue, owner.clone(), is_taker)?;
    let link = OwnedLink::whole(nic, queue);
    Ok(Ownership::new(link, owner))
}
