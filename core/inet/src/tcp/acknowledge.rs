//! When to acknowledge what has arrived.
//!
//! RFC 5681 4.2: at once for what is out of order or fills a gap, for every second full
//! segment, and otherwise within 40 ms, so that the acknowledgement may ride on an answer.
//! "At once" means at the end of the batch.
//!
//! A sender under Nagle's algorithm may hold bytes back until that acknowledgement comes. So
//! what will not be answered is acknowledged as soon as the program has read it (Linux does so
//! in `tcp_cleanup_rbuf`). That is: more than a full segment that does not end with PSH,
//! because the peer has more to say; and if the program only listens, whatever ends with PSH.
//! A program only listens that has sent nothing since an acknowledgement waited in vain, or
//! that has never sent anything and got more than a frame's worth at once. Invariant: when
//! programs take turns, then at most one question of a connection is acknowledged for this.

use super::tcb::Tcb;
use crate::context::Context;
use crate::env::Env;

/// A first question fits a frame of Ethernet, as a rule.
const QUESTION_MAX: u32 = 1460;

/// What we owe the peer, less urgent first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum AckDue {
    /// Nothing new has arrived.
    No,
    /// Something; it may wait for a segment to ride on.
    Delayed,
    /// The same until the program has read.
    OnRead,
    /// At the end of the batch.
    Now,
}

/// What the program does with what it reads (Linux's pingpong mode).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Interactivity {
    /// It has not sent anything yet.
    Unknown,
    /// It sends something back.
    Interactive,
    /// It goes on reading.
    Bulk,
}

impl Tcb {
    /// Owes at least so much.
    #[inline]
    pub(super) fn owe(&mut self, due: AckDue) {
        self.receiver.ack = self.receiver.ack.max(due);
    }

    /// Bytes have arrived in order, up to `len` in a segment.
    #[inline]
    pub(super) fn schedule_ack<E: Env>(&mut self, cx: &Context<'_, E>, len: u32, is_pushed: bool) {
        self.measure_segment(len);
        if self.receiver.interactivity == Interactivity::Unknown
            && self.receiver.unacked > QUESTION_MAX
        {
            self.receiver.interactivity = Interactivity::Bulk;
        }
        if self.is_ack_overdue() {
            self.owe(AckDue::Now);
            return;
        }
        let due = match self.is_due_on_read(is_pushed) {
            true => AckDue::OnRead,
            false => AckDue::Delayed,
        };
        self.owe(due);
        self.arm_delayed_ack(cx.now);
    }

    #[inline]
    fn is_due_on_read(&self, is_pushed: bool) -> bool {
        match is_pushed {
            true => self.receiver.interactivity == Interactivity::Bulk,
            false => self.receiver.unacked > u32::from(self.receiver.segment_max),
        }
    }

    /// Learns how large the peer's full segments are. A device may have joined several.
    #[inline]
    fn measure_segment(&mut self, len: u32) {
        let len = len.min(u32::from(self.sender.mss)) as u16;
        self.receiver.segment_max = self.receiver.segment_max.max(len);
    }

    /// Two full segments wait, or the peer has used up most of what it knows of the window.
    #[inline]
    fn is_ack_overdue(&self) -> bool {
        let receiver = &self.receiver;
        let known = receiver.edge.since(receiver.nxt);
        receiver.unacked >= 2 * u32::from(receiver.segment_max) || known < receiver.unacked
    }
}
