//! What a segment for a finished connection leads to: the table of `docs/time-wait.md`.
//!
//! Three questions decide: what the segment is, where its sequence number lies, and what its
//! clock says. [`judge`] is the whole policy; rows are tried from the first to the last.

use wire::TcpFlags;

use super::entry::Entry;
use super::rules::TimeWaitRules;
use crate::counters::DropReason;
use crate::tcp::segment::Segment;

/// What the segment is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    /// RST, whatever else.
    Reset,
    /// SYN without ACK.
    Syn,
    /// SYN with ACK.
    SynAck,
    /// None of SYN, RST and ACK.
    Silent,
    /// The peer's FIN once more: it ends where we expect the next byte.
    Fin,
    /// An acknowledgement and nothing else.
    Bare,
    /// Anything else with an acknowledgement.
    Other,
}

/// Where SEG.SEQ lies beside RCV.NXT.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Place {
    Before,
    At,
    After,
}

/// What SEG.TSval says beside TS.Recent, the last clock of the old connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Clock {
    /// Neither has one.
    Absent,
    /// The segment has one, the old connection had none.
    Gained,
    /// The old connection had one, the segment has none.
    Lost,
    Older,
    Same,
    Newer,
}

/// What follows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Verdict {
    /// A new connection, if somebody listens; the old one is forgotten then.
    Reopen,
    /// Keep the SYN and challenge its sender: a reset is its answer if it means it.
    Challenge,
    /// The challenge was answered: open with the SYN that was kept.
    TakeUp,
    /// Our last acknowledgement again; the segment is dropped.
    Acknowledge(DropReason),
    /// The same, and the wait begins anew.
    Restart,
    /// Nothing but the peer's clock to note.
    Note,
    /// The wait is over.
    End,
    /// Nothing.
    Drop(DropReason),
}

/// Answers the three questions.
pub(super) fn classify(entry: &Entry, segment: &Segment) -> (Kind, Place, Clock) {
    let has = |flag| segment.has(flag);
    let kind = if has(TcpFlags::RST) {
        Kind::Reset
    } else if has(TcpFlags::SYN) && has(TcpFlags::ACK) {
        Kind::SynAck
    } else if has(TcpFlags::SYN) {
        Kind::Syn
    } else if !has(TcpFlags::ACK) {
        Kind::Silent
    } else if has(TcpFlags::FIN) && segment.seq + segment.len() == entry.ack {
        Kind::Fin
    } else if segment.len() == 0 {
        Kind::Bare
    } else {
        Kind::Other
    };
    let place = if segment.seq == entry.ack {
        Place::At
    } else if segment.seq.before(entry.ack) {
        Place::Before
    } else {
        Place::After
    };
    let stamp = segment.options.timestamps.map(|stamp| stamp.value);
    let clock = match (entry.clock, stamp) {
        (None, None) => Clock::Absent,
        (None, Some(_)) => Clock::Gained,
        (Some(_), None) => Clock::Lost,
        (Some(old), Some(new)) if old == new => Clock::Same,
        (Some(old), Some(new)) if (new.wrapping_sub(old) as i32) < 0 => Clock::Older,
        (Some(_), Some(_)) => Clock::Newer,
    };
    (kind, place, clock)
}

/// The table.
pub(super) fn judge(
    rules: &TimeWaitRules,
    kind: Kind,
    place: Place,
    clock: Clock,
    has_refused: bool,
) -> Verdict {
    use DropReason::{TimeWaitPaws, TimeWaitReset, TimeWaitSegment, Unexpected};
    if rules.is_clumsy {
        return judge_clumsily(kind, place);
    }
    match (kind, place, clock) {
        // 1. The answer of a peer in SYN-SENT to our challenge (RFC 9293 3.10.7.3).
        (Kind::Reset, Place::At, _) if has_refused => Verdict::TakeUp,
        // 2. RFC 9293 3.10.7.4 with the check of RFC 5961 3.2.
        (Kind::Reset, Place::At, _) if !rules.rfc1337 => Verdict::End,
        // 3. RFC 1337: an old duplicate must not end the wait.
        (Kind::Reset, ..) => Verdict::Drop(TimeWaitReset),
        // 4. RFC 6191 2: the peer's clock has gone on, or only the new connection has one.
        (Kind::Syn, _, Clock::Newer | Clock::Gained) => Verdict::Reopen,
        // 5. RFC 6191 2, RFC 1122 4.2.2.13: no clock decides, but the number is beyond.
        (Kind::Syn, Place::After, Clock::Same | Clock::Lost | Clock::Absent) => Verdict::Reopen,
        // 6. RFC 9293 3.10.7.4, where RFC 6191 would be silent: a peer that means it can say so.
        (Kind::Syn, ..) => Verdict::Challenge,
        // 7. RFC 5961 4.2.
        (Kind::SynAck, ..) => Verdict::Acknowledge(TimeWaitSegment),
        // 8. RFC 9293 3.10.7.4: without ACK, drop.
        (Kind::Silent, ..) => Verdict::Drop(Unexpected),
        // 9. RFC 7323 3.2: its sender has used timestamps so far.
        (_, _, Clock::Lost) => Verdict::Drop(TimeWaitPaws),
        // 10. RFC 7323 5.3 R1.
        (_, _, Clock::Older) => Verdict::Acknowledge(TimeWaitPaws),
        // 11. RFC 9293 3.10.7.4: our acknowledgement was lost.
        (Kind::Fin, ..) => Verdict::Restart,
        // 12. What a peer says that has everything.
        (Kind::Bare, Place::At, _) => Verdict::Note,
        // 13. RFC 9293 3.10.7.4: not acceptable.
        _ => Verdict::Acknowledge(TimeWaitSegment),
    }
}

/// illumos before 2014: sequence numbers decide alone, and a reset ends the wait.
fn judge_clumsily(kind: Kind, place: Place) -> Verdict {
    match (kind, place) {
        (Kind::Reset, Place::At) => Verdict::End,
        (Kind::Reset, _) => Verdict::Drop(DropReason::TimeWaitReset),
        (Kind::Syn, Place::After) => Verdict::Reopen,
        (Kind::Syn, _) => Verdict::Acknowledge(DropReason::TimeWaitSyn),
        (Kind::Fin, _) => Verdict::Restart,
        (Kind::Bare, Place::At) => Verdict::Note,
        _ => Verdict::Acknowledge(DropReason::TimeWaitSegment),
    }
}
