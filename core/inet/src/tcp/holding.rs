//! What a connection holds of packet memory, and what it does without while that is tight
//! (`crate::memory` has the theory).

use mbuf::{BLOCK_BYTES, Chain};

use super::acknowledge::AckDue;
use super::tcb::Tcb;
use crate::context::Context;
use crate::counters::DropReason;
use crate::env::{Env, Events};
use crate::net::Net;

impl Tcb {
    /// Bytes of packet memory in its queues. A buffer that is shared by two of them counts
    /// twice.
    #[inline]
    fn memory(&self) -> usize {
        let early = self.receiver.early.as_ref();
        self.sender.flight.memory()
            + self.sender.unsent.memory()
            + self.receiver.queue.memory()
            + early.map_or(0, |early| early.memory())
    }

    /// Tells the ledger what the queues hold now. Called after anything that may have changed
    /// them.
    #[inline]
    pub(crate) fn bill(&mut self, net: &mut Net) {
        let memory = self.memory();
        if memory != self.billed as usize {
            net.tcp_memory.bill(self.billed as usize, memory);
            self.billed = memory as u32;
        }
    }

    /// Tells it what a reader has freed. While an acknowledgement is due that can wait for it, or
    /// for the answer that it rides on: both tell the ledger too, which then mostly finds that
    /// nothing has changed. But not where others wait for memory.
    #[inline]
    pub(crate) fn bill_after_read(&mut self, net: &mut Net) {
        if self.receiver.ack == AckDue::No || net.is_tcp_tight() {
            self.bill(net);
        }
    }

    /// What an earlier connection of the socket has left unread is gone.
    pub(crate) fn forget_unread(&mut self, net: &mut Net) {
        self.receiver.queue = Chain::new();
        self.bill(net);
    }

    /// Bytes that it may add to its queues.
    #[inline(always)]
    pub(super) fn memory_room(&self, net: &Net) -> usize {
        match net.is_tcp_tight() {
            false => usize::MAX,
            true => self.room_when_tight(net),
        }
    }

    #[cold]
    fn room_when_tight(&self, net: &Net) -> usize {
        net.tcp_room(self.memory())
    }

    /// Whether bytes that arrived in order may be kept. A program that reads all it gets goes
    /// on, however much the connection has to send.
    #[inline]
    pub(super) fn may_keep(&self, net: &Net, payload: &Chain) -> bool {
        !net.is_tcp_tight()
            || payload.is_empty()
            || self.receiver.is_shut
            || self.memory_room(net) >= payload.memory()
            || self.receiver.queue.is_empty() && !net.is_scarce
    }

    /// Whether a program that wants to send finds room enough in the buffer and in memory.
    #[inline]
    pub(crate) fn may_send_more(&self, net: &Net) -> bool {
        self.is_roomy() && self.memory_room(net) >= BLOCK_BYTES
    }

    /// Wakes a program that waits for room, if there is some again.
    #[inline]
    pub(super) fn wake_starved<E: Env>(&mut self, cx: &mut Context<'_, E>) {
        if self.may_send_more(cx.net) {
            self.sender.is_starved.set(false);
            cx.env.wake(self.id, Events::WRITABLE);
        }
    }

    /// Its turn in the walk over all connections while memory is tight, or when it no longer
    /// is: gives up what arrived early, and tells who waits of the room there is.
    pub(crate) fn on_relief<E: Env>(&mut self, cx: &mut Context<'_, E>) {
        if cx.net.is_tcp_tight() {
            self.prune_early(cx);
        }
        if self.sender.is_starved.get() {
            self.wake_starved(cx);
        }
        if self.is_window_held_back {
            self.wake_below_low_water(cx);
            self.is_window_held_back = cx.net.is_tcp_tight();
            self.on_read(cx);
        }
    }

    /// Lets go of what arrived out of order, although its arrival may have been reported: RFC 2018
    /// section 8 allows that.
    pub(super) fn prune_early<E: Env>(&mut self, cx: &mut Context<'_, E>) {
        if self.receiver.early.take().is_some() {
            self.drop_segment(cx, DropReason::EarlyPruned);
        }
    }
}
