//! What an acknowledgement changes.

use base::{Duration, Instant};
use wire::{Seq, TcpFlags};

use super::congestion::Ack;
use super::delivery::Delivery;
use super::info::State;
use super::rate::RateSample;
use super::recovery::Phase;
use super::scoreboard::Sent;
use super::segment::Segment;
use super::tcb::{Fin, Tcb};
use crate::context::Context;
use crate::counters::DropReason;
use crate::env::{Env, Events};

/// Milliseconds after which an echoed clock is not believed.
const ECHO_AGE_MAX: u32 = 1 << 20;

impl Tcb {
    /// Takes the acknowledgement of an acceptable segment; `false` if it acknowledges what
    /// was never sent, or what is too old to be true (RFC 5961 5.2).
    #[inline]
    pub(super) fn acknowledge<E: Env>(
        &mut self,
        cx: &mut Context<'_, E>,
        segment: &Segment,
    ) -> bool {
        let ack = segment.ack;
        if ack.after(self.sender.nxt) || ack.before(self.sender.una - self.sender.window_max) {
            self.drop_segment(cx, DropReason::BadAck);
            self.send_challenge(cx);
            return false;
        }
        let window = u32::from(segment.window) << self.sender.scale;
        let is_window_same = window == self.sender.window;
        self.update_window(segment, window);
        if let Some(whole) = self.take_whole_flight(segment) {
            self.advance(cx, ack);
            self.take_in_whole(cx.now, &whole);
            return true;
        }
        let mut news = self.new_delivery(segment, cx.now);
        let is_sack_news = self.note_sacks(cx, segment, &mut news);
        if ack.after(self.sender.una) {
            self.note_echo(cx, segment);
            self.on_acknowledged(cx, segment, &mut news);
        } else if ack == self.sender.una && self.in_flight() > 0 {
            let is_bare = segment.payload.is_empty() && !segment.has(TcpFlags::FIN);
            let is_duplicate = is_bare && is_window_same && !self.is_sack_ok;
            if !is_sack_news && !is_duplicate && news.doubled == 0 {
                return true;
            }
        } else {
            return true;
        }
        self.take_in(cx, &news);
        true
    }

    /// Requests and answers: all that is in flight left in one go, nothing is missing, and the
    /// window keeps nothing back. Then nothing but clocks can change.
    #[inline]
    fn take_whole_flight(&mut self, segment: &Segment) -> Option<Sent> {
        let is_silent = segment.options.sack.as_slice().is_empty() && !self.is_echo(segment);
        if !is_silent || segment.ack != self.sender.nxt || !self.is_at_ease() {
            return None;
        }
        self.recovery.board.take_whole(segment.ack)
    }

    /// The whole flight has arrived.
    #[inline]
    fn take_in_whole(&mut self, now: Instant, whole: &Sent) {
        let rtt = now.since(whole.at);
        self.rtt.sample(rtt, now);
        self.rate
            .sample(whole.len(), Some(whole), now, self.rtt.shortest());
        self.recovery.pass_whole(whole, rtt);
    }

    /// What arrived moves the clocks, finds losses, and moves the windows.
    pub(super) fn take_in<E: Env>(&mut self, cx: &mut Context<'_, E>, news: &Delivery) {
        let rtt = self.sample_rtt(cx, news);
        if news.acked > 0 && self.in_flight() > 0 {
            // RFC 6298 (5.3), by the timeout that this acknowledgement has led to.
            self.arm_retransmit(cx.now);
        }
        let shortest = self.rtt.shortest();
        let sample = self
            .rate
            .sample(news.bytes, news.newest.as_ref(), cx.now, shortest);
        if self.is_uneventful(news) {
            self.recovery.pass(news);
        } else {
            self.recover(cx, news);
            self.steer(cx.now, news, rtt, sample);
        }
        if self.in_flight() > 0 {
            self.arm_tail(cx.now);
        }
    }

    /// Nearly always: nothing is missing, and the window keeps nothing back.
    #[inline]
    fn is_uneventful(&self, news: &Delivery) -> bool {
        self.is_at_ease() && !news.is_reordered && news.doubled == 0 && news.acked > 0
    }

    /// Whether an acknowledgement that brings no bad news changes no window.
    #[inline]
    fn is_at_ease(&self) -> bool {
        self.recovery.is_calm() && !self.is_window_limited && !self.congestion.is_model()
    }

    /// Moves the congestion window.
    fn steer(
        &mut self,
        now: Instant,
        news: &Delivery,
        rtt: Option<Duration>,
        sample: Option<RateSample>,
    ) {
        let ack = Ack {
            now,
            acked: news.acked,
            delivered_bytes: news.bytes,
            in_flight: self.pipe(),
            una: self.sender.una,
            nxt: self.sender.nxt,
            rtt,
            smoothed: self.rtt.smoothed(),
            delivered: self.rate.delivered(),
            sample,
            // What waits to be sent again waits for the window.
            is_limited: self.is_window_limited || self.recovery.board.lost() > 0,
            may_grow: matches!(self.recovery.phase, Phase::Open | Phase::Loss),
            is_recovering: self.recovery.phase != Phase::Open,
        };
        self.congestion.on_ack(&ack);
    }

    /// RFC 9293: only segments newer than the last may change the window.
    #[inline]
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

    fn on_acknowledged<E: Env>(
        &mut self,
        cx: &mut Context<'_, E>,
        segment: &Segment,
        news: &mut Delivery,
    ) {
        let ack = segment.ack;
        let bytes = ack.since(self.sender.una);
        self.recovery.board.acknowledge(ack, news);
        // The SYN is on no scoreboard.
        news.acked = bytes;
        self.advance(cx, ack);
    }

    /// Everything before `ack` has arrived, and some of it was not known to.
    #[inline]
    fn advance<E: Env>(&mut self, cx: &mut Context<'_, E>, ack: Seq) {
        let is_fin_acked = self.is_fin_in_flight() && ack == self.sender.nxt;
        self.sender
            .flight
            .advance(ack.since(self.sender.una) as usize);
        self.sender.una = ack;
        self.timers.backoff = 0;
        self.timers.progress_at = cx.now;
        if ack == self.sender.nxt {
            self.timers.disarm_retransmit();
        }
        if is_fin_acked {
            self.on_fin_acknowledged(cx);
        }
        if self.sender.is_starved.get() {
            self.tune_sender(cx.net);
            self.wake_starved(cx);
        }
    }

    /// RFC 6298 (3): what was sent again is timed only by the clock that the peer echoes.
    fn sample_rtt<E: Env>(&mut self, cx: &Context<'_, E>, news: &Delivery) -> Option<Duration> {
        let rtt = match (news.timed, news.echo) {
            (Some(departed), _) => cx.now.since(departed),
            (None, Some(echo)) if news.acked > 0 && news.is_resent_acked => {
                let millis = (cx.now.as_millis() as u32).wrapping_sub(echo);
                if millis >= ECHO_AGE_MAX {
                    return None;
                }
                Duration::from_millis(u64::from(millis))
            }
            _ => return None,
        };
        self.rtt.sample(rtt, cx.now);
        Some(rtt)
    }

    fn on_fin_acknowledged<E: Env>(&mut self, cx: &mut Context<'_, E>) {
        debug_assert!(self.sender.fin == Fin::Sent);
        match self.state {
            State::FinWait1 => {
                self.state = State::FinWait2;
                self.arm_fin_wait(cx);
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
