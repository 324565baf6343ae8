//! What may be sent next.
//!
//! A segment goes out if the usable window (RFC 9293 3.8.6.2.1) and the congestion window take
//! it, and if it is full, or the last of its data with no reason to wait. Nagle's algorithm
//! (RFC 1122 4.2.3.4) waits as Minshall proposed (draft-minshall-nagle-01; Linux does, too):
//! only while another segment that was not full is in flight. So one write leaves at once
//! whatever its length, and many small ones do not. A cork waits for more data or 200 ms.

use base::Instant;

use super::tcb::{Fin, Tcb};
use super::timers::CORK;
use crate::context::Context;
use crate::env::Env;

/// What to send next.
pub(super) struct Choice {
    pub bytes: u32,
    pub with_fin: bool,
}

/// What windows and device take of the unsent bytes.
#[derive(Clone, Copy)]
struct Sendable {
    bytes: u32,
    /// They are all.
    is_last: bool,
}

impl Tcb {
    /// Decides on the next segment, and sees to it that waiting ends.
    #[inline]
    pub(super) fn choose<E: Env>(&mut self, cx: &mut Context<'_, E>) -> Option<Choice> {
        let unsent = self.sender.unsent.len() as u32;
        let pipe = self.pipe();
        let congestion_room = self.congestion.window().saturating_sub(pipe);
        let choice = self.choose_of(cx, unsent, congestion_room);
        // Until then, what holds the next segment back may be another limit.
        if choice.is_none() {
            self.note_limit(unsent, congestion_room, pipe);
        }
        choice
    }

    #[inline]
    fn choose_of<E: Env>(
        &mut self,
        cx: &mut Context<'_, E>,
        unsent: u32,
        congestion_room: u32,
    ) -> Option<Choice> {
        if unsent == 0 {
            return self.choose_fin();
        }
        if self.is_paced_out(cx.now) {
            return None;
        }
        let sendable = self.sendable(cx, unsent, congestion_room);
        let bytes = self.avoid_silly_window(cx.now, sendable)?;
        let with_fin = self.is_closing() && sendable.is_last;
        Some(Choice { bytes, with_fin })
    }

    /// A FIN without bytes.
    #[inline]
    fn choose_fin(&self) -> Option<Choice> {
        self.is_closing().then_some(Choice {
            bytes: 0,
            with_fin: true,
        })
    }

    #[inline]
    fn sendable<E: Env>(
        &mut self,
        cx: &mut Context<'_, E>,
        unsent: u32,
        congestion_room: u32,
    ) -> Sendable {
        let mss = u32::from(self.sender.mss);
        let burst = match unsent > mss {
            true => self.burst_max(cx),
            false => mss,
        };
        let room = self.usable_window().min(congestion_room);
        let bytes = unsent.min(room).min(burst);
        Sendable {
            bytes,
            is_last: bytes == unsent,
        }
    }

    /// How many of the bytes are worth a segment (RFC 9293 3.8.6.2.1).
    #[inline]
    fn avoid_silly_window(&mut self, now: Instant, sendable: Sendable) -> Option<u32> {
        if sendable.bytes >= u32::from(self.sender.mss) {
            return Some(self.full_segments(now, sendable));
        }
        if self.is_worth_sending(now, sendable) {
            self.timers.cork = Instant::NEVER;
            return Some(sendable.bytes);
        }
        self.arm_override(now, sendable.is_last);
        None
    }

    /// One full segment or more, and behind them the last bytes unless these are held back.
    #[inline]
    fn full_segments(&self, now: Instant, sendable: Sendable) -> u32 {
        match sendable.is_last && !self.is_held(now) {
            true => sendable.bytes,
            false => sendable.bytes - sendable.bytes % u32::from(self.sender.mss),
        }
    }

    /// Whether less than a full segment leaves.
    #[inline]
    fn is_worth_sending(&self, now: Instant, sendable: Sendable) -> bool {
        if sendable.is_last {
            return !self.is_held(now);
        }
        // RFC 1122 4.2.3.4: half of the largest window is enough where the peer's is small.
        sendable.bytes > 0
            && sendable.bytes == self.usable_window()
            && sendable.bytes >= self.sender.window_max / 2
    }

    /// Whether Nagle's algorithm or a cork holds the last bytes back.
    #[inline]
    fn is_held(&self, now: Instant) -> bool {
        let is_corked = self.options.cork && !self.is_cork_over(now);
        let is_nagled = !self.options.no_delay && self.is_partial_in_flight();
        !self.is_closing() && (is_nagled || is_corked)
    }

    /// The override timeout of RFC 9293 3.8.6.2.1: for a cork, or for a window that does not
    /// open.
    #[inline]
    fn arm_override(&mut self, now: Instant, is_last: bool) {
        if is_last && self.options.cork && self.timers.cork == Instant::NEVER {
            self.timers.cork = now + CORK;
        }
        if self.in_flight() == 0 && !is_last && self.timers.is_retransmit_idle() {
            // Nothing is in flight whose acknowledgement could open the window.
            self.arm_retransmit(now);
        }
    }

    /// The override timeout is over: what the window takes leaves, however little it is. A peer
    /// whose buffer has shrunk never again offers half of the most that it did, so that is
    /// forgotten. `false` if it takes nothing.
    pub(super) fn override_silly_window<E: Env>(&mut self, cx: &mut Context<'_, E>) -> bool {
        if self.usable_window() == 0 {
            return false;
        }
        self.sender.window_max = self.sender.window;
        self.send_one_more(cx)
    }

    /// What the peer takes now (RFC 9293 3.8.6.2.1: SND.UNA + SND.WND - SND.NXT).
    #[inline]
    pub(super) fn usable_window(&self) -> u32 {
        self.sender.window.saturating_sub(self.in_flight())
    }

    #[inline]
    fn is_closing(&self) -> bool {
        self.sender.fin == Fin::Queued
    }

    /// Whether a segment that was not full waits for its acknowledgement.
    #[inline]
    fn is_partial_in_flight(&self) -> bool {
        let end = self.sender.partial_end;
        end.after(self.sender.una) && !end.after(self.sender.nxt)
    }

    /// Notes whether the congestion window is what keeps bytes back, or the program.
    #[inline]
    fn note_limit(&mut self, unsent: u32, congestion_room: u32, pipe: u32) {
        let mss = u32::from(self.sender.mss);
        self.is_window_limited = congestion_room < unsent.min(mss);
        if unsent < mss && congestion_room > 0 && self.recovery.board.lost() == 0 {
            self.rate.limit(pipe);
        }
    }

    #[inline]
    fn is_cork_over(&self, now: Instant) -> bool {
        self.timers.cork <= now
    }
}
