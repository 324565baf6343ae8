//! What happens when nothing arrives.
//!
//! A connection has several deadlines and one entry in the wheel, armed for the earliest.
//! One deadline serves retransmission and probing of a closed window, which exclude each
//! other: there either is something in flight or there is not.

use base::{Duration, Instant};
use mbuf::Chain;
use wire::TcpFlags;

use super::acknowledge::{AckDue, Interactivity};
use super::info::State;
use super::tcb::Tcb;
use crate::config::RetryLimits;
use crate::context::Context;
use crate::counters::{Count, ResetReason};
use crate::env::Env;
use crate::error::Error;

/// RFC 1122 allows 500 ms; Linux's floor.
const DELAYED_ACK: Duration = Duration::from_millis(40);
/// Linux's limit on what a cork holds back.
pub(super) const CORK: Duration = Duration::from_millis(200);
/// Deadlines; [`Instant::NEVER`] where there is none.
pub(super) struct Timers {
    retransmit: Instant,
    /// When the silent end of a flight is probed.
    pub tail: Instant,
    /// When what has not arrived is late enough to be lost.
    pub reorder: Instant,
    /// When the next segment may leave.
    pub pace: Instant,
    delayed_ack: Instant,
    keepalive: Instant,
    fin_wait: Instant,
    pub cork: Instant,
    /// When we last sent bytes.
    pub last_sent: Instant,
    /// When the peer last acknowledged something, or had nothing to acknowledge.
    pub progress_at: Instant,
    /// Timeouts in a row.
    pub backoff: u8,
    /// Probes since the peer was last heard.
    pub unanswered: u8,
}

impl Default for Timers {
    fn default() -> Self {
        Self {
            retransmit: Instant::NEVER,
            tail: Instant::NEVER,
            reorder: Instant::NEVER,
            pace: Instant::NEVER,
            delayed_ack: Instant::NEVER,
            keepalive: Instant::NEVER,
            fin_wait: Instant::NEVER,
            cork: Instant::NEVER,
            last_sent: Instant::START,
            progress_at: Instant::START,
            backoff: 0,
            unanswered: 0,
        }
    }
}

impl Timers {
    /// The earliest deadline.
    #[inline]
    pub fn next(&self) -> Instant {
        let rare = self.keepalive.min(self.fin_wait).min(self.cork);
        let sending = self.tail.min(self.reorder).min(self.pace);
        self.retransmit.min(self.delayed_ack).min(sending).min(rare)
    }

    pub fn is_retransmit_idle(&self) -> bool {
        self.retransmit == Instant::NEVER
    }

    /// Nothing is in flight any more.
    pub fn disarm_retransmit(&mut self) {
        self.retransmit = Instant::NEVER;
        self.tail = Instant::NEVER;
        self.reorder = Instant::NEVER;
    }

    pub fn disarm_delayed_ack(&mut self) {
        self.delayed_ack = Instant::NEVER;
    }

    /// The window has opened.
    pub fn stop_probing(&mut self) {
        self.retransmit = Instant::NEVER;
        self.backoff = 0;
    }
}

impl Tcb {
    pub(super) fn arm_retransmit(&mut self, now: Instant) {
        self.timers.retransmit = self.clamp_to_user(now + self.rtt.backed_off(self.timers.backoff));
    }

    /// A connection does not outlive its user timeout for want of a timer.
    fn clamp_to_user(&self, deadline: Instant) -> Instant {
        match self.options.user_timeout_ms {
            0 => deadline,
            millis => {
                let limit = self.timers.progress_at + Duration::from_millis(u64::from(millis));
                deadline.min(limit.max(self.timers.last_sent + Duration::from_millis(1)))
            }
        }
    }

    pub(super) fn arm_delayed_ack(&mut self, now: Instant) {
        self.timers.delayed_ack = self.timers.delayed_ack.min(now + DELAYED_ACK);
    }

    /// Called when the connection is made and when options change.
    pub(crate) fn arm_keepalive(&mut self, now: Instant) {
        let is_wanted = self.options.keepalive && self.state.is_synchronized();
        self.timers.keepalive = if is_wanted {
            now + self.options.keep_idle()
        } else {
            Instant::NEVER
        };
    }

    /// How long a closed connection waits for the peer's FIN.
    pub(super) fn arm_fin_wait<E: Env>(&mut self, cx: &Context<'_, E>) {
        if self.is_orphan {
            let secs = u64::from(cx.net.config.retry_limits.fin_wait_secs);
            self.timers.fin_wait = cx.now + Duration::from_secs(secs);
        }
    }

    pub(crate) fn deadline(&self) -> Instant {
        self.timers.next()
    }

    pub(super) fn stop_timers(&mut self) {
        self.timers = Timers {
            backoff: self.timers.backoff,
            ..Timers::default()
        };
    }

    /// Does what is due.
    pub(crate) fn expire<E: Env>(&mut self, cx: &mut Context<'_, E>) {
        let now = cx.now;
        if self.timers.delayed_ack <= now {
            self.timers.disarm_delayed_ack();
            self.receiver.ack = AckDue::Now;
            self.receiver.interactivity = Interactivity::Bulk;
        }
        if self.timers.fin_wait <= now {
            self.die(cx, None);
            return;
        }
        if self.timers.reorder <= now {
            self.on_reorder_due(cx);
        }
        if self.timers.retransmit <= now {
            self.on_retransmit_due(cx);
        } else if self.timers.tail <= now {
            self.probe_tail(cx);
        }
        if self.timers.keepalive <= now {
            self.on_keepalive_due(cx);
        }
        if self.state != State::Closed {
            self.output(cx);
        }
        if self.timers.cork <= now {
            self.timers.cork = Instant::NEVER;
        }
    }

    fn timeouts_max(&self, retry_limits: &RetryLimits) -> u8 {
        match self.state {
            State::SynSent if self.options.syn_timeouts != 0 => self.options.syn_timeouts,
            State::SynSent => retry_limits.syn_timeouts,
            State::SynReceived if self.is_deferred => retry_limits
                .syn_ack_timeouts
                .max(self.options.defer_timeouts),
            State::SynReceived => retry_limits.syn_ack_timeouts,
            _ if self.is_orphan => retry_limits.orphan_timeouts,
            _ => retry_limits.timeouts,
        }
    }

    fn is_past_user_timeout(&self, now: Instant) -> bool {
        let limit = Duration::from_millis(u64::from(self.options.user_timeout_ms));
        !limit.is_zero() && now.since(self.timers.progress_at) >= limit
    }

    fn on_retransmit_due<E: Env>(&mut self, cx: &mut Context<'_, E>) {
        self.timers.retransmit = Instant::NEVER;
        let is_probing = self.in_flight() == 0;
        if is_probing && self.sender.unsent.is_empty() {
            return;
        }
        let tries = if is_probing {
            self.timers.unanswered
        } else {
            self.timers.backoff
        };
        let tries_max = self.timeouts_max(&cx.net.config.retry_limits);
        if tries >= tries_max || self.is_past_user_timeout(cx.now) {
            self.give_up(cx);
            return;
        }
        self.timers.backoff = self.timers.backoff.saturating_add(1);
        self.arm_retransmit(cx.now);
        match self.state {
            State::SynReceived if self.is_deferred && self.defers() => {}
            State::SynSent | State::SynReceived => self.send_syn(cx),
            _ if is_probing => {
                if !self.override_silly_window(cx) {
                    cx.net.count(Count::WindowProbes);
                    self.probe(cx);
                }
            }
            _ => {
                cx.net.count(Count::Timeouts);
                self.on_timeout(cx);
            }
        }
    }

    fn on_keepalive_due<E: Env>(&mut self, cx: &mut Context<'_, E>) {
        let idle_until = self.receiver.last_arrival + self.options.keep_idle();
        let is_busy = self.in_flight() > 0 || !self.sender.unsent.is_empty();
        if is_busy || idle_until > cx.now {
            self.timers.keepalive = idle_until.max(cx.now + self.options.keep_interval());
            return;
        }
        // RFC 5482: a user timeout takes the place of the number of probes.
        let is_given_up = match self.options.user_timeout_ms {
            0 => self.timers.unanswered >= self.options.keep_count.max(1),
            millis => {
                let limit = Duration::from_millis(u64::from(millis));
                self.timers.unanswered > 0 && cx.now.since(self.receiver.last_arrival) >= limit
            }
        };
        if is_given_up {
            self.give_up(cx);
            return;
        }
        cx.net.count(Count::KeepaliveProbes);
        self.probe(cx);
        self.timers.keepalive = cx.now + self.options.keep_interval();
    }

    /// An empty segment in front of the window: the peer must answer it with what it
    /// expects and takes (RFC 1122 4.2.3.6, and instead of a byte for closed windows).
    pub(super) fn probe<E: Env>(&mut self, cx: &mut Context<'_, E>) {
        self.timers.unanswered = self.timers.unanswered.saturating_add(1);
        self.transmit(cx, self.sender.una - 1, TcpFlags::ACK, Chain::new());
    }

    fn give_up<E: Env>(&mut self, cx: &mut Context<'_, E>) {
        cx.net.count(Count::TimedOut);
        if self.state.is_synchronized() {
            self.tell_of_reset(cx, ResetReason::TimedOut);
        }
        self.die(cx, Some(Error::TimedOut));
    }
}
