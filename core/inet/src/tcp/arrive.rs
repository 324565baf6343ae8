//! A segment arrives for a connection whose sequence numbers are known (RFC 9293
//! 3.10.7.4, hardened by RFC 5961 and RFC 7323).

use base::{Duration, Instant};
use wire::TcpFlags;

use super::acknowledge::AckDue;
use super::info::State;
use super::segment::Segment;
use super::tcb::{Clocks, Tcb};
use crate::context::Context;
use crate::counters::{Count, DropReason, ResetReason};
use crate::env::{Env, Events};
use crate::error::Error;

/// RFC 7323 5.5: an older clock of the peer may have wrapped.
const CLOCK_LIFETIME: Duration = Duration::from_secs(24 * 24 * 3600);

impl Tcb {
    #[inline]
    pub(super) fn arrive<E: Env>(&mut self, cx: &mut Context<'_, E>, segment: &mut Segment) {
        if self.is_old(segment, cx.now) {
            self.drop_segment(cx, DropReason::OldTimestamp);
            // RFC 7323 5.3 R1 asks for an acknowledgement. One that has only been overtaken
            // by another needs none, or both ends would go on acknowledging each other.
            if segment.len() > 0 {
                self.owe(AckDue::Now);
            }
            return;
        }
        // What an old duplicate or another host's guess says about the peer is nothing.
        if !segment.seq.after(self.receiver.edge) {
            self.receiver.last_arrival = cx.now;
            self.timers.unanswered = 0;
        }
        if !self.is_acceptable(segment) {
            self.refuse(cx, segment);
            return;
        }
        if segment.has(TcpFlags::RST) {
            self.on_reset(cx, segment);
            return;
        }
        if segment.has(TcpFlags::SYN) {
            self.drop_segment(cx, DropReason::Suspicious);
            self.send_challenge(cx);
            return;
        }
        if !segment.has(TcpFlags::ACK) {
            self.drop_segment(cx, DropReason::Unexpected);
            return;
        }
        if self.state == State::SynReceived
            && (self.is_kept_waiting(segment) || !self.complete_handshake(cx, segment))
        {
            return;
        }
        self.note_clock(segment, cx.now);
        self.note_marks(cx, segment);
        if !self.acknowledge(cx, segment) {
            return;
        }
        if segment.len() > 0 {
            self.receive(cx, segment);
        }
    }

    /// PAWS: an old duplicate by the peer's clock.
    #[inline]
    fn is_old(&self, segment: &Segment, now: Instant) -> bool {
        let (Some(clocks), Some(stamp)) = (self.clocks, segment.options.timestamps) else {
            return false;
        };
        let is_before = (stamp.value.wrapping_sub(clocks.recent) as i32) < 0;
        // Whoever has put a connection together may not know the peer's clock, and says zero.
        let is_known = clocks.recent != 0;
        is_before
            && is_known
            && !segment.has(TcpFlags::RST)
            && now.since(clocks.recent_at) < CLOCK_LIFETIME
    }

    /// RFC 7323 4.3: only a segment that reaches back to our last acknowledgement.
    #[inline]
    fn note_clock(&mut self, segment: &Segment, now: Instant) {
        if let Some(stamp) = segment.options.timestamps
            && let Some(clocks) = &mut self.clocks
            && !segment.seq.after(self.receiver.acked)
        {
            *clocks = Clocks {
                recent: stamp.value,
                recent_at: now,
            };
        }
    }

    /// Whether any of it lies in the window. An empty segment at the left edge is always
    /// acceptable, and so are its controls if the window is closed.
    #[inline]
    fn is_acceptable(&self, segment: &Segment) -> bool {
        let (nxt, window) = (
            self.receiver.nxt,
            self.receiver.edge.since(self.receiver.nxt),
        );
        if segment.seq == nxt {
            return true;
        }
        let len = segment.len();
        segment.seq.is_within(nxt, window)
            || len > 0 && (segment.seq + (len - 1)).is_within(nxt, window)
    }

    fn refuse<E: Env>(&mut self, cx: &mut Context<'_, E>, segment: &Segment) {
        let is_repeated = segment.seq.before(self.receiver.nxt);
        if is_repeated && segment.len() > 0 {
            cx.net.count(Count::Duplicates);
            if self.state.is_synchronized() {
                self.note_doubled_bytes(cx, segment);
            }
        } else {
            self.drop_segment(cx, DropReason::OutOfWindow);
        }
        if segment.has(TcpFlags::RST) {
            return;
        }
        // Our SYN's answer was lost if the peer repeats its SYN.
        if self.state == State::SynReceived && segment.has(TcpFlags::SYN) {
            self.send_syn(cx);
            return;
        }
        if is_repeated {
            // A duplicate may still carry news for our sending side.
            if segment.has(TcpFlags::ACK) && self.state.is_synchronized() {
                let mut news = self.new_delivery(segment, cx.now);
                if self.note_sacks(cx, segment, &mut news) {
                    self.take_in(cx, &news);
                }
            }
            self.owe(AckDue::Now);
        } else {
            self.send_challenge(cx);
        }
    }

    /// RFC 5961 3.2: only a reset exactly at the left edge is believed.
    fn on_reset<E: Env>(&mut self, cx: &mut Context<'_, E>, segment: &Segment) {
        if segment.seq != self.receiver.nxt {
            self.drop_segment(cx, DropReason::Suspicious);
            self.send_challenge(cx);
            return;
        }
        cx.net.count(Count::ResetsIn);
        let error = match self.state {
            State::SynReceived if self.parent.is_none() => Some(Error::ConnectionRefused),
            State::CloseWait => Some(Error::BrokenPipe),
            State::TimeWait | State::Closing | State::LastAck => None,
            _ => Some(Error::ConnectionReset),
        };
        self.die(cx, error);
    }

    /// Whether a listener's connection waits for more than the end of its handshake.
    pub(super) fn defers(&self) -> bool {
        self.parent.is_some() && self.timers.backoff < self.options.defer_timeouts
    }

    /// The end of a handshake without bytes, which says that the peer is there and no more.
    fn is_kept_waiting(&mut self, segment: &Segment) -> bool {
        let ends = segment.len() == 0 && segment.ack == self.sender.nxt;
        if !ends || !self.defers() {
            return false;
        }
        // Its bytes may come at any time, which measures nothing.
        self.rtt.cancel();
        self.is_deferred = true;
        true
    }

    /// The answer to our SYN, or to our answer, has come.
    fn complete_handshake<E: Env>(&mut self, cx: &mut Context<'_, E>, segment: &Segment) -> bool {
        let is_answer = segment.ack.after(self.sender.una) && !segment.ack.after(self.sender.nxt);
        if !is_answer {
            self.drop_segment(cx, DropReason::BadAck);
            let tuple = self.tuple;
            cx.send_reset(&tuple, segment, ResetReason::BadAck);
            return false;
        }
        self.sender.window = u32::from(segment.window) << self.sender.scale;
        self.sender.window_max = self.sender.window;
        self.sender.wl1 = segment.seq;
        self.sender.wl2 = segment.ack;
        self.rtt.finish(self.timers.progress_at, cx.now);
        self.establish(cx);
        true
    }

    pub(super) fn establish<E: Env>(&mut self, cx: &mut Context<'_, E>) {
        self.state = State::Established;
        self.arm_keepalive(cx.now);
        if self.options.receive_low_water > 1 {
            self.make_room_for_low_water(cx.net);
        }
        if self.sender.fin != super::tcb::Fin::Open {
            self.state = State::FinWait1;
        }
        if self.parent.is_none() {
            cx.env.wake(self.id, Events::WRITABLE);
        }
    }
}
