//! What is lost (RFC 8985): what left a reordering window earlier than something that has
//! arrived. Time rather than order decides, so that a retransmission lost again is found
//! like any other loss, and a path that reorders costs nothing.
//!
//! The window is zero until the path has been seen to reorder and three segments are
//! reported beyond a gap; then a quarter of the shortest round trip, and more after each
//! needless retransmission. Without SACK, three duplicate acknowledgements are a loss
//! (RFC 6582).

use base::{Duration, Instant};
use wire::Seq;

use super::super::delivery::Delivery;
use super::super::scoreboard::{Fate, Sent};
use super::super::tcb::Tcb;
use super::Phase;
use crate::context::Context;
use crate::counters::Count;
use crate::env::Env;

/// RFC 5681: so many duplicates are a loss rather than reordering.
const DUPLICATES: u8 = 3;
/// RFC 8985 6.2 step 4: recoveries without a needless retransmission before the window shrinks.
const PERSISTENCE: u8 = 16;

/// What is known of the latest delivery.
#[derive(Default)]
pub(super) struct Rack {
    /// Departure and end of the stretch that left last of those that arrived.
    at: Instant,
    end: Seq,
    /// How long it took, in microseconds.
    rtt: u32,
    /// End of what has arrived anywhere in the stream.
    foremost: Seq,
    is_reordering: bool,
    /// Quarters of the shortest round trip that make the window, less one.
    stretch: u8,
    persistence: u8,
    /// End of the flight in which the window grew last.
    grown: Option<Seq>,
}

impl Rack {
    pub fn foremost(&self) -> Seq {
        self.foremost
    }

    pub fn begin_flight(&mut self, first: Seq) {
        self.foremost = first;
    }

    pub fn take_in(&mut self, news: &Delivery) {
        self.foremost = self.foremost.max(news.foremost);
        self.is_reordering |= news.is_reordered;
        let Some(newest) = &news.newest else { return };
        self.rtt = news.micros_since(newest.at);
        if newest.is_after(self.at, self.end) {
            (self.at, self.end) = (newest.at, newest.end);
        }
    }

    /// All that was in flight has arrived after `rtt`. It left once and in one go, so it is the
    /// latest there is.
    #[inline]
    pub fn take_in_whole(&mut self, whole: &Sent, rtt: Duration) {
        self.foremost = whole.end;
        self.rtt = u32::try_from(rtt.as_micros()).unwrap_or(u32::MAX);
        (self.at, self.end) = (whole.at, whole.end);
    }

    /// Something was sent again in vain (RFC 8985 6.2 step 4), once a round trip.
    pub fn widen(&mut self, una: Seq, nxt: Seq) {
        if self.grown.is_none_or(|grown| !una.before(grown)) {
            self.grown = Some(nxt);
            self.stretch = self.stretch.saturating_add(1);
            self.persistence = PERSISTENCE;
        }
    }

    pub fn end_recovery(&mut self) {
        self.persistence = self.persistence.saturating_sub(1);
        if self.persistence == 0 {
            self.stretch = 0;
        }
    }

    /// Whether `sent` left before the latest delivery, so that it should have arrived.
    fn is_passed(&self, sent: &Sent) -> bool {
        !sent.is_after(self.at, self.end)
    }

    fn deadline(&self, sent: &Sent, window: u32) -> Instant {
        sent.at + micros(self.rtt) + micros(window)
    }
}

fn micros(micros: u32) -> Duration {
    Duration::from_micros(u64::from(micros))
}

impl Tcb {
    /// RFC 8985 6.2 step 4: how much later than others a segment may arrive, in microseconds.
    fn reordering_window(&self) -> u32 {
        let rack = &self.recovery.rack;
        let many = u32::from(DUPLICATES) * u32::from(self.sender.mss);
        let is_sure = matches!(self.recovery.phase, Phase::Fast | Phase::Loss)
            || self.recovery.board.held() >= many;
        if !rack.is_reordering && is_sure {
            return 0;
        }
        let window = (u32::from(rack.stretch) + 1).saturating_mul(self.rtt.shortest() / 4);
        window.min(self.rtt.smoothed().as_micros() as u32)
    }

    /// RFC 8985 6.2 step 5. What is not lost yet is looked at again when its time comes.
    pub(super) fn detect_losses<E: Env>(&mut self, cx: &mut Context<'_, E>) {
        self.timers.reorder = Instant::NEVER;
        if self.recovery.board.is_quiet() && self.recovery.rack.end == self.sender.una {
            return;
        }
        let window = self.reordering_window();
        let (mut index, mut lost, mut latest) = (0, 0, None);
        while let Some(sent) = self.recovery.board.get(index).copied() {
            let is_passed = self.recovery.rack.is_passed(&sent);
            if sent.fate == Fate::InFlight && is_passed {
                let deadline = self.recovery.rack.deadline(&sent, window);
                if deadline <= cx.now {
                    lost += self.recovery.board.lose(index);
                    if sent.times > 0 {
                        cx.net.count(Count::RetransmitsLost);
                    }
                } else {
                    latest = latest.max(Some(deadline));
                }
            } else if sent.fate == Fate::InFlight && sent.times == 0 {
                // What follows left later still, or was sent again later.
                break;
            }
            index += 1;
        }
        if let Some(deadline) = latest {
            self.timers.reorder = deadline;
        }
        if lost > 0 {
            self.on_loss(cx);
        }
    }

    /// The reordering window of something has passed in silence.
    pub(in super::super) fn on_reorder_due<E: Env>(&mut self, cx: &mut Context<'_, E>) {
        self.detect_losses(cx);
        let shortest = self.rtt.shortest();
        let nothing = Delivery::new(cx.now, shortest, None, self.recovery.rack.foremost);
        self.reduce(&nothing);
    }

    /// Something is lost.
    pub(super) fn on_loss<E: Env>(&mut self, cx: &mut Context<'_, E>) {
        match self.recovery.phase {
            Phase::Open => {
                self.enter(Phase::Fast);
                // RFC 3168 6.1.2: the peer hears of every reduction.
                self.ecn.is_reduced = self.ecn.is_on;
                self.congestion
                    .on_loss(self.in_flight(), self.recovery.board.lost());
            }
            // The window is shrinking already.
            Phase::Marked => self.recovery.phase = Phase::Fast,
            Phase::Fast | Phase::Loss => return,
        }
        cx.net.count(if self.is_sack_ok {
            Count::SackRecoveries
        } else {
            Count::RenoRecoveries
        });
    }

    /// Without SACK: an acknowledgement that acknowledged nothing.
    pub(super) fn count_duplicate<E: Env>(&mut self, cx: &mut Context<'_, E>, news: &Delivery) {
        if news.acked > 0 {
            return;
        }
        let recovery = &mut self.recovery;
        recovery.duplicates = recovery.duplicates.saturating_add(1);
        let is_open = matches!(recovery.phase, Phase::Open | Phase::Marked);
        if is_open && recovery.duplicates >= DUPLICATES {
            self.lose_first();
            self.on_loss(cx);
        }
    }

    /// Takes the first segment in flight for lost.
    pub(super) fn lose_first(&mut self) {
        let end = self.sender.una + u32::from(self.sender.mss);
        self.recovery.board.cut(0, end);
        self.recovery.board.lose(0);
    }

    /// RFC 8985 6.3: at a timeout, the first segment is lost, and what should have arrived.
    /// Without SACK nothing can be said of what follows it, so all of it is.
    pub(super) fn lose_overdue(&mut self, now: Instant) {
        let window = self.reordering_window();
        let mut index = 0;
        while let Some(sent) = self.recovery.board.get(index).copied() {
            let deadline = self.recovery.rack.deadline(&sent, window);
            if index == 0 || !self.is_sack_ok || deadline <= now {
                self.recovery.board.lose(index);
            }
            index += 1;
        }
    }
}
