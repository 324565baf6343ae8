//! Small segments that wait for others of their connection (Linux's tcp_autocorking).
//!
//! # Problem
//! A program answers many questions of one connection in a turn, each by a call of its own and without Nagle's algorithm:
//! each answer is a frame then, which costs this stack, the wire and the peer as much as a full one.
//!
//! # Idea
//! A shell that does not show its port each frame at once says so ([`Stack::autocork`]). Until it shows them
//! ([`Stack::end_autocork`]) the first segment of a connection lies there anyway, and what is less than a full one behind
//! it loses no time if it leaves as a segment with what follows. A connection that sends once pays for nothing.
//!
//! Whatever else makes a connection send, an acknowledgement, a timer, its end, takes along what waits.

use super::tcb::{Fin, Tcb};
use crate::env::Env;
use crate::net::Net;
use crate::stack::Stack;

/// What a stack knows of its shell's frames.
#[derive(Debug, Default)]
pub(crate) struct Autocork {
    /// Frames may lie in the port.
    is_on: bool,
    /// How often they were shown.
    round: u32,
}

impl Autocork {
    #[inline]
    pub(super) fn round(&self) -> u32 {
        self.round
    }
}

impl Stack {
    /// Frames that the stack hands out are not on their way before [`end_autocork`](Self::end_autocork), which must be
    /// soon.
    #[inline]
    pub fn autocork(&mut self) {
        self.net.autocork.is_on = true;
    }

    /// Now they are, and so is what has waited for others: it is handed out.
    #[inline]
    pub fn end_autocork<E: Env>(&mut self, env: &mut E) {
        if core::mem::take(&mut self.net.autocork.is_on) {
            self.net.autocork.round = self.net.autocork.round.wrapping_add(1);
            self.send_pending(env);
        }
    }
}

impl Tcb {
    /// Whether unsent bytes wait for more: then the connection is queued for the end.
    #[inline]
    pub(crate) fn waits_behind_frame(&mut self, net: &mut Net) -> bool {
        net.autocork.is_on && self.has_frame_in_port(net) && self.queue_for_end(net)
    }

    /// Whether a segment of new bytes left since the port was shown its frames, and what follows is not a full one yet.
    fn has_frame_in_port(&self, net: &Net) -> bool {
        self.sent_in == net.autocork.round
            && self.in_flight() != 0
            && self.sender.fin == Fin::Open
            && self.sender.unsent.len() < usize::from(self.sender.mss)
    }

    fn queue_for_end(&mut self, net: &mut Net) -> bool {
        if !self.is_pending {
            self.is_pending = true;
            net.ack_queue.push(self.id.index);
        }
        true
    }
}
