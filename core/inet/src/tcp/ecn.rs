//! Explicit congestion notification (RFC 3168): routers mark instead of losing.
//!
//! Both ends agree in their SYNs. What is sent for the first time then says that it may be
//! marked. A receiver that sees a mark repeats so in all acknowledgements, until the sender
//! says that it has shrunk its window; the sender does so once a round trip. A SYN
//! without an answer is repeated without asking (6.1.1.1), because some boxes lose those
//! that ask.

use wire::TcpFlags;

use super::recovery::Phase;
use super::segment::Segment;
use super::tcb::Tcb;
use crate::config::Ecn;
use crate::context::Context;
use crate::counters::Count;
use crate::env::Env;

/// ECT(0) in the type of service: the sender understands marks.
pub(super) const CAPABLE: u8 = 2;

/// The bits of the type of service that are ours, and not the program's.
pub(super) const BITS: u8 = 3;

/// What a SYN that asks carries.
const ASKING: TcpFlags = TcpFlags::ECE.with(TcpFlags::CWR);

/// The state of a connection.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Notification {
    /// Our SYN has asked.
    is_asked: bool,
    /// Both ends have agreed.
    pub is_on: bool,
    /// A mark has arrived, and the peer does not know yet.
    is_echoing: bool,
    /// The window has shrunk, and the peer does not know yet.
    pub is_reduced: bool,
}

impl Tcb {
    /// What our SYN, or our answer to the peer's, adds to its flags.
    pub(super) fn syn_notification<E: Env>(
        &mut self,
        cx: &Context<'_, E>,
        is_answer: bool,
    ) -> TcpFlags {
        if is_answer {
            return if self.ecn.is_on {
                TcpFlags::ECE
            } else {
                TcpFlags(0)
            };
        }
        self.ecn.is_asked = cx.net.config.ecn == Ecn::Ask && self.timers.backoff == 0;
        if self.ecn.is_asked {
            ASKING
        } else {
            TcpFlags(0)
        }
    }

    /// The peer's SYN has come: whether both use it.
    pub(super) fn agree_on_notification<E: Env>(&mut self, cx: &Context<'_, E>, syn: &Segment) {
        self.ecn.is_on = if syn.has(TcpFlags::ACK) {
            self.ecn.is_asked && syn.has(TcpFlags::ECE) && !syn.has(TcpFlags::CWR)
        } else {
            // Who opens at once with us has asked without knowing our answer.
            !self.ecn.is_asked && syn.has(ASKING) && cx.net.config.ecn != Ecn::Off
        };
    }

    /// What every segment adds to its flags.
    #[inline]
    pub(super) fn notification(&self) -> TcpFlags {
        if self.ecn.is_echoing {
            TcpFlags::ECE
        } else {
            TcpFlags(0)
        }
    }

    /// Takes in what an acceptable segment says as a receiver (6.1.3).
    #[inline]
    pub(super) fn note_marks<E: Env>(&mut self, cx: &mut Context<'_, E>, segment: &Segment) {
        if !self.ecn.is_on {
            return;
        }
        if segment.has(TcpFlags::CWR) {
            self.ecn.is_echoing = false;
        }
        if segment.is_marked {
            cx.net.count(Count::MarksIn);
            self.ecn.is_echoing = true;
        }
    }

    /// Whether an acknowledgement reports a mark.
    #[inline]
    pub(super) fn is_echo(&self, segment: &Segment) -> bool {
        self.ecn.is_on && segment.has(TcpFlags::ECE)
    }

    /// Takes in what an acknowledgement says (6.1.2): the window shrinks as if something were
    /// lost, and at most once a round trip.
    #[inline]
    pub(super) fn note_echo<E: Env>(&mut self, cx: &mut Context<'_, E>, segment: &Segment) {
        if self.is_echo(segment) && self.recovery.phase == Phase::Open {
            cx.net.count(Count::MarkReductions);
            self.enter(Phase::Marked);
            self.congestion.on_loss(self.in_flight(), 0);
            self.ecn.is_reduced = true;
        }
    }
}
