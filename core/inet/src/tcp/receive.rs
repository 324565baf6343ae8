//! Bytes in: order, and the window, whose right edge moves only in steps that are worth it.

use mbuf::Chain;
use wire::{SackBlock, SackBlocks, TcpFlags};

use super::acknowledge::AckDue;
use super::assembler::Insertion;
use super::info::State;
use super::segment::Segment;
use super::tcb::Tcb;
use super::transmit::WINDOW_SCALE;
use crate::context::Context;
use crate::counters::{Count, DropReason, ResetReason};
use crate::env::{Env, Events};
use crate::net::Net;

/// Payloads up to this are copied behind the last buffer of the queue, so that a peer that
/// sends single bytes does not fill our memory with nearly empty buffers. Larger ones are while
/// the buffers are less than half full.
const COPY_BYTES_MAX: usize = 256;

impl Tcb {
    /// Takes the bytes and the FIN of an acceptable segment.
    #[inline]
    pub(super) fn receive<E: Env>(&mut self, cx: &mut Context<'_, E>, segment: &mut Segment) {
        if !self.state.is_receiving() {
            // After the peer's FIN there are no more bytes; a repeated FIN is acknowledged.
            self.owe(AckDue::Now);
            return;
        }
        let sent = segment.payload.len();
        if segment.seq.before(self.receiver.nxt) {
            self.note_doubled_bytes(cx, segment);
        }
        segment.trim(self.receiver.nxt, self.receiver.edge);
        if segment.payload.len() < sent {
            self.owe(AckDue::Now);
        }
        if self.is_orphan && !segment.payload.is_empty() {
            // Nobody will ever read it: the peer must know that it is lost.
            self.drop_segment(cx, DropReason::DataAfterClose);
            self.reset(cx, ResetReason::DataAfterClose);
            return;
        }
        if segment.seq != self.receiver.nxt {
            self.receive_early(cx, segment);
            return;
        }
        if !self.may_keep(cx.net, &segment.payload) {
            // What it acknowledges was taken in; its bytes and its FIN come again.
            self.drop_segment(cx, DropReason::TcpMemoryTight);
            self.prune_early(cx);
            self.owe(AckDue::Now);
            return;
        }
        let len = segment.payload.len() as u32;
        let has_fin = segment.has(TcpFlags::FIN);
        let before = self.receiver.nxt;
        self.note_round_trip(cx, segment);
        self.queue(&mut segment.payload);
        let is_ended = self.join_early();
        let is_news = self.receiver.nxt != before;
        if has_fin || is_ended {
            self.on_fin(cx);
        } else if is_news {
            self.schedule_ack(cx, len, segment.has(TcpFlags::PSH));
        }
        if is_news {
            self.wake_for_bytes(cx);
        }
    }

    #[inline]
    fn queue(&mut self, payload: &mut Chain) {
        let len = payload.len() as u32;
        self.receiver.nxt += len;
        self.receiver.unacked += len;
        let queue = &mut self.receiver.queue;
        if !queue.is_empty()
            && (payload.len() <= COPY_BYTES_MAX || queue.memory() > 2 * queue.len())
            && let Some(bytes) = payload.as_single()
            && queue.back_room() >= bytes.len()
        {
            queue.append_in_place(bytes);
        } else {
            payload.move_front(len as usize, queue);
        }
    }

    fn receive_early<E: Env>(&mut self, cx: &mut Context<'_, E>, segment: &mut Segment) {
        cx.net.count(Count::OutOfOrder);
        if cx.net.is_tcp_tight() {
            self.drop_segment(cx, DropReason::EarlyPruned);
            self.prune_early(cx);
            self.owe(AckDue::Now);
            return;
        }
        let block = SackBlock {
            start: segment.seq,
            end: segment.seq + segment.payload.len() as u32,
        };
        let early = self.receiver.early.get_or_insert_default();
        if segment.has(TcpFlags::FIN) {
            early.end_at(block.end);
        }
        match early.insert(segment.seq, core::mem::take(&mut segment.payload)) {
            // A FIN alone.
            Insertion::Duplicate if block.start == block.end => {}
            Insertion::Kept => {}
            Insertion::Duplicate => {
                cx.net.count(Count::Duplicates);
                if self.is_sack_ok {
                    cx.net.count(Count::DuplicateSacksEarly);
                    self.receiver.doubled = Some(block);
                }
            }
            Insertion::Full => self.drop_segment(cx, DropReason::ReorderLimit),
        }
        if self
            .receiver
            .early
            .as_ref()
            .is_some_and(|early| early.is_empty())
        {
            self.receiver.early = None;
        }
        if self.is_sack_ok {
            self.owe(AckDue::Now);
        } else {
            // Without SACK each duplicate acknowledgement counts.
            self.send_ack(cx);
        }
    }

    /// RFC 2883 4.1: bytes before what we expect are reported as received twice.
    pub(super) fn note_doubled_bytes<E: Env>(
        &mut self,
        cx: &mut Context<'_, E>,
        segment: &Segment,
    ) {
        let end = (segment.seq + segment.payload.len() as u32).min(self.receiver.nxt);
        if self.is_sack_ok && end.after(segment.seq) {
            cx.net.count(Count::DuplicateSacksSent);
            let start = segment.seq;
            self.receiver.doubled = Some(SackBlock { start, end });
        }
    }

    /// What the next segment reports: what has arrived twice, and then what has arrived early.
    pub(super) fn sack_blocks(&mut self) -> SackBlocks {
        let Some(doubled) = self.receiver.doubled.take() else {
            let early = self.receiver.early.as_ref();
            return early.map_or(SackBlocks::default(), |early| early.sack_blocks());
        };
        let mut blocks = SackBlocks::default();
        blocks.push(doubled);
        if let Some(early) = &self.receiver.early {
            for block in early.sack_blocks().as_slice() {
                blocks.push(*block);
            }
        }
        blocks
    }

    /// Moves early bytes whose turn has come; whether the stream ends behind them.
    #[inline]
    fn join_early(&mut self) -> bool {
        self.receiver.early.is_some() && self.join_all_early()
    }

    fn join_all_early(&mut self) -> bool {
        let Some(mut early) = self.receiver.early.take() else {
            return false;
        };
        while let Some(mut bytes) = early.pop_at(self.receiver.nxt) {
            self.queue(&mut bytes);
        }
        let is_ended = early.ends_at(self.receiver.nxt);
        if !early.is_empty() {
            self.receiver.early = Some(early);
        }
        self.owe(AckDue::Now);
        is_ended
    }

    fn on_fin<E: Env>(&mut self, cx: &mut Context<'_, E>) {
        self.receiver.nxt += 1;
        self.receiver.is_finished = true;
        self.receiver.early = None;
        self.owe(AckDue::Now);
        self.state = match self.state {
            State::Established => State::CloseWait,
            State::FinWait1 => State::Closing,
            State::FinWait2 => State::TimeWait,
            state => state,
        };
        let mut events = Events::READABLE | Events::READ_CLOSED;
        if self.state != State::CloseWait {
            events |= Events::WRITABLE;
        }
        events.set(Events::HANGUP, self.state == State::TimeWait);
        cx.env.wake(self.id, events);
    }

    /// The window field of the next segment. Moves the right edge if that is worth it
    /// (RFC 1122 4.2.3.3), and never back.
    #[inline]
    pub(super) fn offer_window(&mut self, net: &Net) -> u16 {
        let wanted = self.receiver.nxt + self.free_space(net);
        if wanted.since(self.receiver.edge) >= self.worthwhile_gain() {
            self.receiver.edge = wanted;
        }
        let scale = self.receiver.scale;
        let window = self.receiver.edge.since(self.receiver.nxt);
        let field = window.div_ceil(1 << scale).min(u32::from(u16::MAX));
        self.receiver.edge = self.receiver.edge.max(self.receiver.nxt + (field << scale));
        field as u16
    }

    /// Bytes that may be on their way to us.
    #[inline]
    fn free_space(&mut self, net: &Net) -> u32 {
        let used = self.receiver.queue.len() as u32;
        let most = u32::from(u16::MAX) << self.receiver.scale;
        let free = self.options.window_max().saturating_sub(used).min(most);
        match net.is_tcp_tight() {
            false => free,
            true => self.free_space_when_tight(net, free),
        }
    }

    /// Half of what memory allows, since a buffer may be half empty. A program that has read
    /// all gets two segments whatever others hold, or it would never hear that there is more.
    #[cold]
    fn free_space_when_tight(&mut self, net: &Net, free: u32) -> u32 {
        let segment = u32::from(self.receiver.segment_max);
        let least = match self.receiver.queue.is_empty() {
            true => 2 * segment,
            false => 0,
        };
        let allowed = u32::try_from(self.memory_room(net) / 2).unwrap_or(u32::MAX);
        let wanted = allowed.max(least).min(free);
        self.is_window_held_back |= wanted < free;
        wanted
    }

    #[inline]
    fn worthwhile_gain(&self) -> u32 {
        u32::from(self.receiver.segment_max)
            .min(self.options.window_max() / 2)
            .max(1)
    }

    /// The program has read. Tells the peer at once if that was promised, or if it may be waiting
    /// for room: if the window that it knows is an eighth of what it could know, or less than a segment.
    /// (It is a quarter when a connection begins, because a SYN cannot offer more; that is no
    /// reason.)
    #[inline(always)]
    pub(crate) fn on_read<E: Env>(&mut self, cx: &mut Context<'_, E>) {
        self.tune_receiver(cx);
        let known = self.receiver.edge.since(self.receiver.nxt);
        let free = self.free_space(cx.net);
        let (gain, worthwhile) = (free.saturating_sub(known), self.worthwhile_gain());
        let is_waiting = known <= free / 8 || known < worthwhile;
        let is_due = self.receiver.ack == AckDue::OnRead || is_waiting && gain >= worthwhile;
        if is_due && self.state.is_receiving() {
            self.send_ack(cx);
        }
    }

    /// The right edge before anything was received.
    pub(super) fn open_window(&mut self, is_scaled: bool) {
        self.receiver.scale = if is_scaled { WINDOW_SCALE } else { 0 };
        let first = self.options.window_max().min(u32::from(u16::MAX));
        self.receiver.edge = self.receiver.nxt + first;
    }
}
