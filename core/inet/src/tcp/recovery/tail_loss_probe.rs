//! A probe when the end of a flight is silent (RFC 8985 section 7).
//!
//! If the last segments of a flight are lost, nothing arrives that could tell. After
//! two round trips we send one more segment, new if there is one: its SACK block shows the
//! hole, which would otherwise cost a timeout. If the probe itself repairs the only loss, the
//! window shrinks all the same.

use base::{Duration, Instant};
use wire::Seq;

use super::super::delivery::Delivery;
use super::super::tcb::Tcb;
use super::Phase;
use crate::context::Context;
use crate::counters::Count;
use crate::env::Env;

/// RFC 8985 7.2: how long a peer may keep back the acknowledgement of a single segment.
const ACK_DELAY_MAX: Duration = Duration::from_millis(200);

/// A probe without an answer.
pub(super) struct TailLossProbe {
    /// End of the flight when it left.
    end: Seq,
    is_resent: bool,
    /// Bytes in flight then.
    flight: u32,
}

impl Tcb {
    /// When to probe, if nothing arrives until then; called when something new has left and
    /// when an acknowledgement has come.
    pub(in super::super) fn arm_tail(&mut self, now: Instant) {
        let is_wanted = self.is_sack_ok
            && self.recovery.phase == Phase::Open
            && self.recovery.board.is_quiet()
            && self.recovery.tail.is_none()
            && self.rtt.is_known()
            && self.state.is_synchronized();
        let mut wait = 2 * self.rtt.smoothed();
        if self.in_flight() <= u32::from(self.sender.mss) {
            wait += ACK_DELAY_MAX;
        }
        self.timers.tail = if is_wanted {
            now + wait
        } else {
            Instant::NEVER
        };
    }

    /// Sends the probe.
    pub(in super::super) fn probe_tail<E: Env>(&mut self, cx: &mut Context<'_, E>) {
        self.timers.tail = Instant::NEVER;
        let is_silent = self.recovery.phase == Phase::Open && self.recovery.board.is_quiet();
        if self.in_flight() == 0 || !is_silent {
            return;
        }
        cx.net.count(Count::LossProbes);
        let is_resent = !self.send_one_more(cx);
        if is_resent {
            self.resend_last(cx);
        }
        self.recovery.tail = Some(TailLossProbe {
            end: self.sender.nxt,
            is_resent,
            flight: self.in_flight(),
        });
        // RFC 8985 7.3: the timer starts anew, so that the probe has time to be answered.
        self.arm_retransmit(cx.now);
    }

    /// RFC 8985 7.4.2: whether the probe has repaired a loss that nothing else would show.
    pub(super) fn judge_tail<E: Env>(&mut self, cx: &mut Context<'_, E>, news: &Delivery) {
        let Some(tail) = &self.recovery.tail else {
            return;
        };
        if self.sender.una.before(tail.end) {
            return;
        }
        let (is_resent, is_doubled) = (tail.is_resent, news.doubled > 0);
        let tail_flight = tail.flight;
        self.recovery.tail = None;
        // What was sent twice and is reported as received twice was not lost. If only one copy
        // arrived, its acknowledgement says so by not reporting a second.
        if is_resent && !is_doubled && self.recovery.phase == Phase::Open {
            cx.net.count(Count::LossProbeRecoveries);
            self.enter(Phase::Marked);
            let mss = u32::from(self.sender.mss);
            self.congestion
                .on_loss(self.in_flight().max(tail_flight), mss);
            self.end_recovery();
        }
    }
}
