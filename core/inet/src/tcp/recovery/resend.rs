//! Sending again what is lost.

use wire::{Seq, TcpFlags};

use super::super::scoreboard::Fate;
use super::super::tcb::Tcb;
use super::Phase;
use crate::context::Context;
use crate::counters::Count;
use crate::env::Env;
use crate::journal::{Resent, What};

impl Tcb {
    /// Sends the first segment in flight again, whatever the window.
    pub(super) fn resend_first<E: Env>(&mut self, cx: &mut Context<'_, E>) {
        if let Some(index) = self.recovery.board.next_lost(self.sender.una) {
            self.resend(cx, index, u32::from(self.sender.mss));
        }
    }

    /// Sends the last segment in flight again.
    pub(super) fn resend_last<E: Env>(&mut self, cx: &mut Context<'_, E>) {
        let Some(last) = self.recovery.board.last() else {
            return;
        };
        let mss = u32::from(self.sender.mss);
        let start = last.start.max(last.end - mss.min(last.len()));
        let index = self.recovery.board.cut_from(start);
        self.resend(cx, index, mss);
    }

    /// Sends again what is lost, as far as the congestion window takes it.
    pub(in super::super) fn retransmit_lost<E: Env>(&mut self, cx: &mut Context<'_, E>) {
        let mut from = self.sender.una;
        while self.recovery.board.lost() > 0 {
            let Some(index) = self.recovery.board.next_lost(from) else {
                return;
            };
            let Some(sent) = self.recovery.board.get(index).copied() else {
                return;
            };
            let mss = u32::from(self.sender.mss);
            let room = self.congestion_room();
            if room < sent.len().min(mss) || self.is_paced_out(cx.now) {
                return;
            }
            let most = self.burst_max(cx).min(room - room % mss).max(mss);
            self.resend(cx, index, most);
            from = sent.start;
        }
    }

    /// Sends the first `most` bytes of a stretch again.
    fn resend<E: Env>(&mut self, cx: &mut Context<'_, E>, index: usize, most: u32) {
        let Some(sent) = self.recovery.board.get(index).copied() else {
            return;
        };
        let end = sent.end.min(sent.start + most);
        self.recovery.board.cut(index, end);
        let stamp = self.rate.stamp(cx.now, false);
        debug_assert!(sent.fate != Fate::Held);
        self.recovery.board.resend(index, cx.now, stamp);
        let bytes = end.since(sent.start);
        self.note_resent(bytes, cx.now);
        self.count_out(bytes);
        cx.net.count(Count::Retransmits);
        let (count, why) = match self.recovery.phase {
            Phase::Fast => (Count::FastRetransmits, Resent::Fast),
            Phase::Loss => (Count::SlowStartRetransmits, Resent::Timeout),
            Phase::Open | Phase::Marked => (Count::ProbeRetransmits, Resent::Probe),
        };
        cx.net.count(count);
        self.note(cx, What::Retransmit(why));
        self.retransmitted = self.retransmitted.saturating_add(1);
        self.put_again(cx, sent.start, end);
    }

    /// Puts bytes in flight, and the FIN if it lies there, onto the wire.
    fn put_again<E: Env>(&mut self, cx: &mut Context<'_, E>, start: Seq, end: Seq) {
        let offset = start.since(self.sender.una) as usize;
        let wanted = end.since(start) as usize;
        let payload = if offset == 0 {
            self.sender.flight.share_front_with_headroom(wanted)
        } else {
            self.sender.flight.share(offset, wanted)
        };
        let mut flags = TcpFlags::ACK;
        if self.is_fin_in_flight() && end == self.sender.nxt {
            flags = flags.with(TcpFlags::FIN);
        }
        self.timers.last_sent = cx.now;
        self.pace(cx.now, payload.len() as u32);
        self.transmit(cx, start, flags, payload);
    }
}
