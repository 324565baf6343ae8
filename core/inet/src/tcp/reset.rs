//! Resets that we send, each with its reason.
//!
//! A reset is where a connection dies without a word to the program at the other end, so
//! whoever looks for the cause needs more than their number. The reasons are counted under
//! names that begin with the state that they were sent from.

use mbuf::Chain;
use wire::{TcpFlags, TcpRepr};

use super::segment::Segment;
use super::tcb::Tcb;
use crate::addr::FourTuple;
use crate::context::Context;
use crate::counters::{Count, ResetReason};
use crate::env::Env;

impl<E: Env> Context<'_, E> {
    /// Answers a segment that belongs to nothing (RFC 9293 3.10.7.1), so many times a second.
    pub(super) fn refuse(&mut self, tuple: &FourTuple, segment: &Segment, reason: ResetReason) {
        if segment.has(TcpFlags::RST) {
            return;
        }
        if self.net.may_reset(self.now) {
            self.send_reset(tuple, segment, reason);
        } else {
            self.net.count(Count::ResetsSkipped);
        }
    }

    /// Answers a segment that a connection being made cannot use (3.10.7.3, 3.10.7.4).
    pub(super) fn send_reset(&mut self, tuple: &FourTuple, segment: &Segment, reason: ResetReason) {
        if segment.has(TcpFlags::RST) {
            return;
        }
        let mut repr = TcpRepr {
            src_port: tuple.local.port,
            dst_port: tuple.remote.port,
            flags: TcpFlags::RST,
            ..TcpRepr::default()
        };
        if segment.has(TcpFlags::ACK) {
            repr.seq = segment.ack;
        } else {
            repr.ack = segment.seq + segment.len();
            repr.flags = TcpFlags::RST.with(TcpFlags::ACK);
        }
        self.net.count_reset(reason);
        self.send_bare(tuple, &repr);
    }
}

impl Tcb {
    /// Ends the connection with a reset.
    pub(crate) fn reset<E: Env>(&mut self, cx: &mut Context<'_, E>, reason: ResetReason) {
        self.tell_of_reset(cx, reason);
        self.die(cx, None);
    }

    /// Sends the reset alone.
    pub(super) fn tell_of_reset<E: Env>(&mut self, cx: &mut Context<'_, E>, reason: ResetReason) {
        if self.state.has_peer() {
            cx.net.count_reset(reason);
            self.transmit(cx, self.sender.nxt, TcpFlags::RST, Chain::new());
        }
    }
}
