//! What is lost, and when it is sent again (RFC 6675; RFC 6582 without SACK).
//!
//! *Open*: nothing is known to be missing. *Fast*: acknowledgements tell that something is,
//! and still arrive. *Loss*: nothing arrived until the timer ran out; everything in
//! flight is taken for lost. Both end when all that was in flight at their beginning
//! (`point`) is acknowledged. One cursor, `next`, walks once through what is lost; a
//! retransmission that is lost again is left to the timer.

use mbuf::Chain;
use wire::{SackBlock, Seq, TcpFlags};

use super::scoreboard::Scoreboard;
use super::segment::Segment;
use super::tcb::Tcb;
use crate::context::Context;
use crate::counters::Count;
use crate::env::Env;

/// RFC 5681: so many duplicates are a loss rather than reordering.
const DUPLICATES: u8 = 3;

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) enum Phase {
    #[default]
    Open,
    Fast,
    Loss,
}

/// The state of recovery.
#[derive(Default)]
pub(super) struct Recovery {
    pub phase: Phase,
    point: Seq,
    /// Next byte to look at for sending again.
    next: Seq,
    duplicates: u8,
    board: Scoreboard,
}

impl Tcb {
    /// Everything before this is lost unless the scoreboard has it.
    fn lost_edge(&self) -> Seq {
        let Self {
            recovery, sender, ..
        } = self;
        let mss = u32::from(sender.mss);
        let first = if recovery.next.after(sender.una) {
            sender.una
        } else {
            sender.una + mss
        };
        match recovery.phase {
            Phase::Open => sender.una,
            Phase::Loss => recovery.point,
            Phase::Fast => recovery
                .board
                .lost_edge(sender.una, u32::from(DUPLICATES) * mss)
                .max(first),
        }
        .min(sender.nxt)
    }

    /// RFC 6675 `pipe`: bytes that are probably still under way.
    fn pipe(&self) -> u32 {
        let Self {
            recovery, sender, ..
        } = self;
        let edge = self.lost_edge();
        let from = recovery.next.max(sender.una).min(edge);
        let lost = recovery.board.missing(from, edge);
        let gone = if self.is_sack_ok {
            recovery.board.bytes()
        } else {
            u32::from(recovery.duplicates) * u32::from(sender.mss)
        };
        self.in_flight().saturating_sub(lost).saturating_sub(gone)
    }

    /// Bytes that the congestion window still takes.
    #[inline]
    pub(super) fn congestion_room(&self) -> u32 {
        let out = if self.recovery.phase == Phase::Open && self.recovery.board.is_empty() {
            self.in_flight()
        } else {
            self.pipe()
        };
        self.congestion.window().saturating_sub(out)
    }

    /// Notes SACK blocks; returns whether they told anything new.
    pub(super) fn note_sacks(&mut self, segment: &Segment) -> bool {
        if !self.is_sack_ok {
            return false;
        }
        let mut is_news = false;
        for block in segment.options.sack.as_slice() {
            let is_in_flight =
                block.start.after(self.sender.una) && !block.end.after(self.sender.nxt);
            if is_in_flight {
                is_news |= self.recovery.board.add(*block);
            }
        }
        is_news
    }

    /// An acknowledgement came that acknowledged nothing.
    pub(super) fn on_duplicate<E: Env>(&mut self, cx: &mut Context<'_, E>) {
        self.recovery.duplicates = self.recovery.duplicates.saturating_add(1);
        let mss = u32::from(self.sender.mss);
        let edge = self
            .recovery
            .board
            .lost_edge(self.sender.una, u32::from(DUPLICATES) * mss);
        let is_lost = self.recovery.duplicates >= DUPLICATES || edge.after(self.sender.una);
        if self.recovery.phase != Phase::Open || !is_lost {
            return;
        }
        cx.net.count(Count::FastRecoveries);
        self.congestion.on_loss(self.in_flight());
        self.recovery.phase = Phase::Fast;
        self.recovery.point = self.sender.nxt;
        self.recovery.next = self.sender.una;
        self.resend_first(cx);
    }

    /// `una` has moved. Returns whether the window may grow.
    pub(super) fn on_progress(&mut self) -> bool {
        let una = self.sender.una;
        self.recovery.board.advance(una);
        self.recovery.duplicates = 0;
        match self.recovery.phase {
            Phase::Open => true,
            Phase::Fast | Phase::Loss if !una.before(self.recovery.point) => {
                self.recovery.phase = Phase::Open;
                true
            }
            Phase::Fast => {
                if !self.is_sack_ok {
                    // RFC 6582: a partial acknowledgement names the next loss.
                    self.recovery.next = una;
                }
                false
            }
            Phase::Loss => true,
        }
    }

    /// The timer ran out: all in flight is lost, and SACK reports may be stale
    /// (RFC 2018 section 8).
    pub(super) fn on_timeout<E: Env>(&mut self, cx: &mut Context<'_, E>) {
        let is_first = self.recovery.phase != Phase::Loss;
        self.congestion.on_timeout(self.in_flight(), is_first);
        self.rtt.cancel();
        self.recovery.phase = Phase::Loss;
        self.recovery.point = self.sender.nxt;
        self.recovery.next = self.sender.una;
        self.recovery.duplicates = 0;
        self.recovery.board.clear();
        self.resend_first(cx);
    }

    fn resend_first<E: Env>(&mut self, cx: &mut Context<'_, E>) {
        if let Some(gap) = self
            .recovery
            .board
            .next_gap(self.sender.una, self.sender.nxt)
        {
            self.resend(cx, gap);
        }
    }

    /// Sends again what is lost, as far as the congestion window takes it.
    pub(super) fn retransmit_lost<E: Env>(&mut self, cx: &mut Context<'_, E>) {
        while self.recovery.phase != Phase::Open {
            let from = self.recovery.next.max(self.sender.una);
            let Some(gap) = self.recovery.board.next_gap(from, self.lost_edge()) else {
                return;
            };
            let needed = gap.end.since(gap.start).min(u32::from(self.sender.mss));
            if self.congestion_room() < needed {
                return;
            }
            self.resend(cx, gap);
        }
    }

    /// Sends the first segment of a gap again.
    fn resend<E: Env>(&mut self, cx: &mut Context<'_, E>, gap: SackBlock) {
        let offset = gap.start.since(self.sender.una) as usize;
        let wanted = gap.end.since(gap.start).min(u32::from(self.sender.mss)) as usize;
        let payload = if offset == 0 {
            self.sender.flight.share_front_with_headroom(wanted)
        } else {
            self.sender.flight.share(offset, wanted)
        };
        self.resend_payload(cx, gap.start, payload);
    }

    fn resend_payload<E: Env>(&mut self, cx: &mut Context<'_, E>, seq: Seq, payload: Chain) {
        let mut flags = TcpFlags::ACK;
        let mut end = seq + payload.len() as u32;
        let is_at_end = end.since(self.sender.una) as usize >= self.sender.flight.len();
        if self.is_fin_in_flight() && is_at_end {
            flags = flags.with(TcpFlags::FIN);
            end += 1;
        }
        self.recovery.next = self.recovery.next.max(end);
        self.rtt.cancel();
        self.timers.last_sent = cx.now;
        cx.net.count(Count::Retransmits);
        self.transmit(cx, seq, flags, payload);
    }
}
