//! What an acknowledgement changes.

use base::Duration;
use wire::TcpFlags;

use super::info::State;
use super::segment::Segment;
use super::tcb::{Fin, Tcb};
use crate::context::Context;
use crate::counters::DropReason;
use crate::env::{Env, Events};

impl Tcb {
    /// Takes the acknowledgement of an acceptable segment; `false` if it acknowledges what
    /// was never sent, or what is too old to be true (RFC 5961 5.2).
    pub(super) fn acknowledge<E: Env>(
        &mut self,
        cx: &mut Context<'_, E>,
        segment: &Segment,
    ) -> bool {
        let ack = segment.ack;
        if ack.after(self.sender.nxt) || ack.before(self.sender.una - self.sender.window_max) {
            cx.net.drop(DropReason::BadAck);
            self.send_challenge(cx);
            return false;
        }
        let window = u32::from(segment.window) << self.sender.scale;
        let is_window_same = window == self.sender.window;
        self.update_window(segment, window);
        let is_sack_news = self.note_sacks(segment);
        if ack.after(self.sender.una) {
            self.on_acknowledged(cx, segment);
        } else if ack == self.sender.una && self.in_flight() > 0 {
            let is_bare = segment.payload.is_empty() && !segment.has(TcpFlags::FIN);
            if is_sack_news || is_bare && is_window_same && !self.is_sack_ok {
                self.on_duplicate(cx);
            }
        }
        true
    }

    /// RFC 9293: only segments newer than the last may change the window.
    fn update_window(&mut self, segment: &Segment, window: u32) {
        let sender = &mut self.sender;
        let is_newer = sender.wl1.before(segment.seq)
            || sender.wl1 == segment.seq && !segment.ack.before(sender.wl2);
        if !is_newer || segment.ack.before(sender.una) {
            return;
        }
        if sender.window == 0 && window > 0 && sender.nxt == segment.ack {
            self.timers.stop_probing();
        }
        sender.window = window;
        sender.window_max = sender.window_max.max(window);
        sender.wl1 = segment.seq;
        sender.wl2 = segment.ack;
    }

    fn on_acknowledged<E: Env>(&mut self, cx: &mut Context<'_, E>, segment: &Segment) {
        let ack = segment.ack;
        let was_limited = self.congestion_room() < u32::from(self.sender.mss);
        let bytes = ack.since(self.sender.una);
        let is_fin_acked = self.is_fin_in_flight() && ack == self.sender.nxt;
        self.sender.flight.advance(bytes as usize);
        self.sender.una = ack;
        self.sample_rtt(cx, segment);
        self.timers.backoff = 0;
        self.timers.progress_at = cx.now;
        if self.on_progress() && was_limited {
            self.congestion.grow(bytes);
        }
        if ack == self.sender.nxt {
            self.timers.disarm_retransmit();
        } else {
            self.arm_retransmit(cx.now);
        }
        if is_fin_acked {
            self.on_fin_acknowledged(cx);
        }
        if self.sender.is_starved && self.is_roomy() {
            self.sender.is_starved = false;
            cx.env.wake(self.id, Events::WRITABLE);
        }
    }

    fn sample_rtt<E: Env>(&mut self, cx: &Context<'_, E>, segment: &Segment) {
        self.rtt.acknowledge(segment.ack, cx.now);
        // After a timeout only the echoed clock knows which copy arrived.
        if self.timers.backoff > 0
            && let Some(echo) = segment.options.timestamps.filter(|_| self.clocks.is_some())
        {
            let millis = self.clock(cx.now).wrapping_sub(echo.echo);
            if millis < 1 << 20 {
                self.rtt.sample(Duration::from_millis(u64::from(millis)));
            }
        }
    }

    fn on_fin_acknowledged<E: Env>(&mut self, cx: &mut Context<'_, E>) {
        debug_assert!(self.sender.fin == Fin::Sent);
        match self.state {
            State::FinWait1 => {
                self.state = State::FinWait2;
                self.arm_fin_wait(cx.now);
            }
            State::Closing => self.state = State::TimeWait,
            State::LastAck => self.state = State::Closed,
            _ => return,
        }
        if self.state != State::FinWait2 {
            cx.env.wake(
                self.id,
                Events::HANGUP | Events::READABLE | Events::WRITABLE,
            );
        }
    }
}
