//! Bytes out: from the program into the queue, and from the queue into segments.

use base::Instant;
use mbuf::{BLOCK_CAPACITY, Chain};
use wire::{Seq, TcpFlags};

use super::acknowledge::{AckDue, Interactivity};
use super::choose::Choice;
use super::info::State;
use super::scoreboard::Sent;
use super::tcb::{Fin, Sender, Tcb};
use crate::context::Context;
use crate::env::Env;
use crate::net::Net;

/// Parts of queues are counted too, so that one-byte writes do not hold a block each
/// beyond reason: so many bytes of buffer allow one part.
const BYTES_PER_PART: usize = 512;

impl Tcb {
    /// Whether the end of the batch may have something to send.
    #[inline]
    pub(super) fn has_output(&self) -> bool {
        self.receiver.ack == AckDue::Now
            || self.state.is_sending()
                && (!self.sender.unsent.is_empty()
                    || self.sender.fin == Fin::Queued
                    || self.recovery.phase != super::recovery::Phase::Open)
    }

    /// Whether no byte waits to leave for the first time.
    #[inline]
    pub(crate) fn is_all_sent(&self) -> bool {
        self.sender.unsent.is_empty()
    }

    /// The end of a batch: sends what it has caused.
    #[inline]
    pub(crate) fn finish_batch<E: Env>(&mut self, cx: &mut Context<'_, E>) {
        self.is_pending = false;
        self.output_now(cx);
    }

    /// Sends what may be sent.
    #[inline]
    pub(crate) fn output_now<E: Env>(&mut self, cx: &mut Context<'_, E>) {
        if !matches!(self.state, State::Closed | State::TimeWait) {
            self.output(cx);
        }
    }

    /// Sends all that may be sent, and the acknowledgement that is due.
    #[inline]
    pub(super) fn output<E: Env>(&mut self, cx: &mut Context<'_, E>) {
        if self.state.is_sending() {
            self.retransmit_lost(cx);
            self.send_new(cx);
        }
        if self.receiver.ack == AckDue::Now {
            self.send_ack(cx);
        }
    }

    #[inline]
    fn send_new<E: Env>(&mut self, cx: &mut Context<'_, E>) {
        while let Some(Choice { bytes, with_fin }) = self.choose(cx) {
            self.restart_after_idle(cx.now);
            self.send_segment(cx, bytes, with_fin);
            self.arm_tail(cx.now);
        }
    }

    #[inline]
    fn send_segment<E: Env>(&mut self, cx: &mut Context<'_, E>, bytes: u32, with_fin: bool) {
        let seq = self.sender.nxt;
        let Sender { unsent, flight, .. } = &mut self.sender;
        let frame = unsent.share_front_with_headroom(bytes as usize);
        unsent.move_front(bytes as usize, flight);
        let mut flags = TcpFlags::ACK;
        if self.sender.unsent.is_empty() && bytes > 0 {
            flags = flags.with(TcpFlags::PSH);
        }
        self.sender.nxt += bytes;
        self.receiver.interactivity = Interactivity::Interactive;
        self.note_partial(bytes);
        if with_fin {
            flags = flags.with(TcpFlags::FIN);
            self.sender.fin = Fin::Sent;
            self.sender.nxt += 1;
        }
        if self.timers.is_retransmit_idle() || seq == self.sender.una {
            self.timers.progress_at = cx.now;
            self.arm_retransmit(cx.now);
        }
        self.note_sent(cx.now, seq);
        self.timers.last_sent = cx.now;
        self.sent_in = cx.net.autocork.round();
        self.transmit_new(cx, seq, flags, frame);
    }

    /// The last of so many bytes have just left.
    #[inline]
    fn note_partial(&mut self, bytes: u32) {
        let mss = u32::from(self.sender.mss);
        if bytes < mss || self.sender.unsent.is_empty() && !bytes.is_multiple_of(mss) {
            self.sender.partial_end = self.sender.nxt;
        }
    }

    /// Everything from `start` on has just left for the first time.
    #[inline]
    fn note_sent(&mut self, now: Instant, start: Seq) {
        let is_first = start == self.sender.una;
        if is_first {
            self.recovery.begin_flight(start);
        }
        let stamp = self.rate.stamp(now, is_first);
        let end = self.sender.nxt;
        self.recovery.board.push(Sent::new(start, end, now, stamp));
        self.count_out(end.since(start));
        self.pace(now, end.since(start));
    }

    /// Sends a segment of new bytes beyond the congestion window; `false` if there is none, or
    /// the peer does not take it.
    pub(super) fn send_one_more<E: Env>(&mut self, cx: &mut Context<'_, E>) -> bool {
        let unsent = self.sender.unsent.len() as u32;
        let bytes = unsent
            .min(self.usable_window())
            .min(u32::from(self.sender.mss));
        if bytes == 0 {
            return false;
        }
        let with_fin = self.sender.fin == Fin::Queued && bytes == unsent;
        self.send_segment(cx, bytes, with_fin);
        true
    }

    #[inline]
    fn restart_after_idle(&mut self, now: Instant) {
        if self.in_flight() == 0 && now.since(self.timers.last_sent) > self.rtt.timeout() {
            self.congestion.on_idle();
        }
    }

    /// Bytes that the program may still queue.
    #[inline]
    fn send_room(&self) -> usize {
        let (flight, unsent) = (&self.sender.flight, &self.sender.unsent);
        let limit = self.options.send_buffer as usize;
        if flight.parts() + unsent.parts() >= (limit / BYTES_PER_PART).max(4) {
            return 0;
        }
        limit.saturating_sub(flight.len() + unsent.len())
    }

    /// The same, and that memory allows.
    #[inline]
    pub(crate) fn room_to_write(&self, net: &Net) -> usize {
        self.send_room().min(self.memory_room(net))
    }

    /// Whether it is worth waking a program that wants to send.
    #[inline]
    pub(super) fn is_roomy(&self) -> bool {
        self.send_room() >= (self.options.send_buffer as usize / 3).max(1)
    }

    /// Queues what `fill` writes, up to `wanted` bytes, for which there is room; says how many
    /// there were.
    #[inline]
    pub(crate) fn write<E: Env>(
        &mut self,
        cx: &mut Context<'_, E>,
        wanted: usize,
        fill: &mut dyn FnMut(&mut [u8]) -> usize,
    ) -> usize {
        self.sender.unsent.reserve(wanted / BLOCK_CAPACITY);
        let mut done = 0;
        while done < wanted {
            let mut offered = 0;
            let written =
                self.sender
                    .unsent
                    .fill_in_place(wanted - done, &mut |space: &mut [u8]| {
                        offered = space.len();
                        if offered == 0 { 0 } else { fill(space) }
                    });
            done += written;
            if written < offered {
                break;
            }
            if done < wanted {
                match self.write_new_part(cx, wanted - done, fill) {
                    Written::All(bytes) => done += bytes,
                    Written::Short(bytes) => {
                        done += bytes;
                        break;
                    }
                }
            }
        }
        done
    }

    #[inline]
    fn write_new_part<E: Env>(
        &mut self,
        cx: &mut Context<'_, E>,
        wanted: usize,
        fill: &mut dyn FnMut(&mut [u8]) -> usize,
    ) -> Written {
        let Some(mut part) = cx.buffer_to_queue() else {
            cx.net.note_scarcity();
            return Written::Short(0);
        };
        let room = part.tailroom().min(wanted);
        let written = part.extend(room).map_or(0, fill).min(room);
        part.shrink_to(written);
        self.sender.unsent.push_back(part);
        if written < room {
            Written::Short(written)
        } else {
            Written::All(written)
        }
    }

    /// Queues what fits of `bytes`, without copying.
    pub(crate) fn write_chain(&mut self, net: &Net, bytes: &mut Chain) -> usize {
        let taken = bytes.split_to(self.room_to_write(net));
        let len = taken.len();
        self.sender.unsent.append(taken);
        len
    }
}

/// How far a caller's copy went.
enum Written {
    All(usize),
    Short(usize),
}
