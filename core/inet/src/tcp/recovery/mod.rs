//! What is lost, and when it is sent again.
//!
//! *Open*: nothing is known to be missing. *Marked*: a router has marked something (RFC 3168),
//! or a tail probe has repaired a loss: the window shrinks, nothing is missing. *Fast*:
//! something is missing, and acknowledgements still arrive. *Loss*: nothing arrived until
//! the timer ran out. All but the first end when what was in flight at their beginning
//! (`point`) is acknowledged, or when it turns out that nothing was lost.
//!
//! | file | what | source |
//! |---|---|---|
//! | `rack` | what is lost, by time; without SACK by counting duplicates | RFC 8985, RFC 6582 |
//! | `tail_loss_probe` | a probe when the end of a flight is silent | RFC 8985 section 7 |
//! | `reduction` | how fast the window shrinks | RFC 6937 |
//! | `undo` | losses that were none | RFC 3522, RFC 4015, RFC 3708 |
//! | `resend` | sending again | RFC 5681 |

mod rack;
mod reduction;
mod resend;
mod tail_loss_probe;
mod undo;

use alloc::boxed::Box;

use base::Duration;
use wire::{SackBlock, Seq};

use self::rack::Rack;
use self::reduction::Reduction;
use self::tail_loss_probe::TailLossProbe;
use self::undo::Undo;
use super::delivery::Delivery;
use super::scoreboard::{Scoreboard, Sent};
use super::segment::Segment;
use super::tcb::Tcb;
use crate::context::Context;
use crate::counters::Count;
use crate::env::Env;

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) enum Phase {
    #[default]
    Open,
    Marked,
    Fast,
    Loss,
}

/// What only a connection in trouble needs.
pub(super) struct Episode {
    reduction: Reduction,
    undo: Undo,
}

/// The state of recovery.
#[derive(Default)]
pub(super) struct Recovery {
    pub phase: Phase,
    /// The phase ends when everything before this is acknowledged.
    point: Seq,
    /// Duplicate acknowledgements in a row from a peer without SACK.
    duplicates: u8,
    pub board: Scoreboard,
    rack: Rack,
    tail: Option<TailLossProbe>,
    /// Of the current episode, or of the last one until all of its flight is acknowledged.
    episode: Option<Box<Episode>>,
}

impl Recovery {
    /// Whether nothing is missing, suspected or being probed.
    #[inline]
    pub(super) fn is_calm(&self) -> bool {
        self.phase == Phase::Open
            && self.board.is_quiet()
            && self.duplicates == 0
            && self.tail.is_none()
            && self.episode.is_none()
    }

    /// Takes in what changes nothing while all is calm.
    #[inline]
    pub(super) fn pass(&mut self, news: &Delivery) {
        self.rack.take_in(news);
    }

    /// The same for all that was in flight, which took `rtt`.
    #[inline]
    pub(super) fn pass_whole(&mut self, whole: &Sent, rtt: Duration) {
        self.rack.take_in_whole(whole, rtt);
    }

    /// What has left in the order of the stream, `foremost` being the first of a new flight.
    #[inline]
    pub(super) fn begin_flight(&mut self, foremost: Seq) {
        self.rack.begin_flight(foremost);
        if self.phase == Phase::Open {
            self.episode = None;
        }
    }
}

impl Tcb {
    /// RFC 6675 `pipe`: bytes that are probably still under way.
    #[inline]
    pub(super) fn pipe(&self) -> u32 {
        let board = &self.recovery.board;
        let mut pipe = self.in_flight();
        if !board.is_quiet() || self.recovery.duplicates > 0 {
            let mss = u32::from(self.sender.mss);
            // Without SACK each duplicate says that a segment has left the network.
            let gone = u32::from(self.recovery.duplicates) * mss;
            pipe = pipe
                .saturating_sub(board.held())
                .saturating_sub(board.lost())
                .saturating_sub(gone);
        }
        pipe
    }

    /// Bytes that the congestion window still takes.
    #[inline]
    pub(super) fn congestion_room(&self) -> u32 {
        self.congestion.window().saturating_sub(self.pipe())
    }

    /// An empty report of delivery for what `segment` tells.
    pub(super) fn new_delivery(&self, segment: &Segment, now: base::Instant) -> Delivery {
        let echo = segment
            .options
            .timestamps
            .filter(|stamp| self.clocks.is_some() && stamp.echo != 0)
            .map(|stamp| stamp.echo.wrapping_sub(self.clock_offset));
        let foremost = self.recovery.rack.foremost();
        Delivery::new(now, self.rtt.shortest(), echo, foremost)
    }

    /// Notes SACK blocks; returns whether they told anything new.
    pub(super) fn note_sacks<E: Env>(
        &mut self,
        cx: &mut Context<'_, E>,
        segment: &Segment,
        news: &mut Delivery,
    ) -> bool {
        if !self.is_sack_ok {
            return false;
        }
        let blocks = segment.options.sack.as_slice();
        if let Some(first) = blocks.first()
            && is_duplicate(first, blocks.get(1), segment.ack)
        {
            cx.net.count(Count::DuplicateSacks);
            news.doubled = first.end.since(first.start);
        }
        let mut is_news = false;
        for block in blocks {
            let is_in_flight =
                block.start.after(self.sender.una) && !block.end.after(self.sender.nxt);
            if is_in_flight && block.end.after(segment.ack) {
                is_news |= self.recovery.board.hold(*block, news);
            }
        }
        is_news
    }

    /// Draws the consequences of an acknowledgement that has moved `una`, or carried news.
    pub(super) fn recover<E: Env>(&mut self, cx: &mut Context<'_, E>, news: &Delivery) {
        self.recovery.rack.take_in(news);
        if news.is_reordered {
            cx.net.count(Count::ReorderingsSeen);
        }
        self.note_doubled(cx, news);
        if news.acked > 0 {
            self.on_progress(cx, news);
        }
        self.judge_tail(cx, news);
        if self.is_sack_ok {
            self.detect_losses(cx);
        } else {
            self.count_duplicate(cx, news);
        }
        self.reduce(news);
    }

    /// `una` has moved.
    fn on_progress<E: Env>(&mut self, cx: &mut Context<'_, E>, news: &Delivery) {
        self.recovery.duplicates = 0;
        if self.recovery.phase == Phase::Open || self.undo_by_clock(cx, news) {
            return;
        }
        if !self.sender.una.before(self.recovery.point) {
            self.end_recovery();
        } else if !self.is_sack_ok && self.recovery.phase == Phase::Fast {
            // RFC 6582 3.2 step 3: a partial acknowledgement names the next loss, which is sent
            // again whatever the window.
            self.lose_first();
            self.resend_first(cx);
        }
    }

    fn end_recovery(&mut self) {
        if matches!(self.recovery.phase, Phase::Fast | Phase::Marked) {
            self.congestion.on_recovered();
        }
        self.recovery.phase = Phase::Open;
        self.recovery.rack.end_recovery();
    }

    /// Begins an episode in `phase`, which what is in flight now will end.
    pub(super) fn enter(&mut self, phase: Phase) {
        if self.recovery.phase == Phase::Open || self.recovery.episode.is_none() {
            self.recovery.episode = Some(Box::new(Episode {
                reduction: Reduction::default(),
                undo: Undo::new(&self.congestion),
            }));
        }
        let in_flight = self.in_flight();
        if let Some(episode) = &mut self.recovery.episode {
            episode.reduction = Reduction::new(in_flight);
        }
        self.recovery.phase = phase;
        self.recovery.point = self.sender.nxt;
        self.recovery.tail = None;
    }

    /// The timer ran out.
    pub(super) fn on_timeout<E: Env>(&mut self, cx: &mut Context<'_, E>) {
        if self.recovery.board.is_reneged() {
            cx.net.count(Count::SackReneging);
            self.recovery.board.distrust();
        }
        let is_first = self.recovery.phase != Phase::Loss;
        let in_flight = self.in_flight();
        self.enter(Phase::Loss);
        self.congestion.on_timeout(in_flight, is_first);
        self.rtt.cancel();
        self.recovery.duplicates = 0;
        self.lose_overdue(cx.now);
        self.resend_first(cx);
    }
}

/// RFC 2883 section 4: the first block reports bytes that arrived twice if it lies before the
/// acknowledgement, or within the second block.
fn is_duplicate(first: &SackBlock, second: Option<&SackBlock>, ack: Seq) -> bool {
    let is_within =
        |second: &SackBlock| !first.start.before(second.start) && !first.end.after(second.end);
    !first.end.after(ack) || second.is_some_and(is_within)
}
