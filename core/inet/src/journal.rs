//! The last things that went wrong with TCP, or looked like it, each with its connection.
//!
//! Counters say how often something happens; to find out why, one must know to whom, and in
//! which state. So the last few hundred such events are remembered, always: whoever looks
//! for them afterwards finds them, and nobody has to be told before. Each has a number, so
//! that a reader who comes again knows which are new, and how many it missed.
//!
//! Each kind of event has a ring of its own: a busy server's peers send segments for connections
//! that are over all day, and nothing is wrong with that. So they must not push out the few
//! retransmissions and drops that somebody looks for.
//!
//! Stacks that share a machine share the numbers too, so that their events have one order.
//!
//! Invariant: of each kind, the numbers of what is remembered grow; a stack by itself leaves no
//! gaps.
//! Not here: what each stands for (`counters`), packets (a sniffer's work), SYNs beyond
//! the unsolicited share (`unsolicited`): a flood of them would push out all else.

use alloc::collections::VecDeque;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicU64, Ordering};

use base::Instant;
use wire::TcpFlags;

use crate::addr::{Endpoint, FourTuple};
use crate::counters::DropReason;
use crate::tcp::State;

/// As many events of each kind are remembered.
pub const JOURNAL_EVENTS_MAX: usize = 256;

/// A kind of events.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum EventKind {
    /// Segments that were sent again.
    Retransmit,
    /// Segments that came for connections that are over.
    TimeWait,
    /// Segments that were dropped.
    Drop,
}

impl EventKind {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Retransmit, Self::TimeWait, Self::Drop];

    /// The name that tools show.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Retransmit => "retransmit",
            Self::TimeWait => "time_wait",
            Self::Drop => "drop",
        }
    }
}

/// How many events of each kind there were: what the next ones' numbers are.
#[derive(Debug, Default)]
pub struct EventNumbers([AtomicU64; EventKind::ALL.len()]);

impl EventNumbers {
    /// The number of the next event of this kind.
    pub fn next(&self, kind: EventKind) -> u64 {
        self.0[kind as usize].load(Ordering::SeqCst)
    }

    fn take(&self, kind: EventKind) -> u64 {
        self.0[kind as usize].fetch_add(1, Ordering::Relaxed)
    }
}

/// Why something was sent again.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Resent {
    /// A SYN or the answer to one was not acknowledged in time.
    Syn,
    /// Others that were sent later have arrived.
    Fast,
    /// Nothing was acknowledged in time.
    Timeout,
    /// To provoke an acknowledgement.
    Probe,
}

/// What happened.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum What {
    /// A segment was sent again.
    Retransmit(Resent),
    /// A segment came for a connection that is over.
    TimeWait,
    /// A segment was dropped.
    Drop(DropReason),
}

impl What {
    /// Its kind.
    pub const fn kind(self) -> EventKind {
        match self {
            Self::Retransmit(_) => EventKind::Retransmit,
            Self::TimeWait => EventKind::TimeWait,
            Self::Drop(_) => EventKind::Drop,
        }
    }

    /// The reason's name.
    pub const fn reason(self) -> &'static str {
        match self {
            Self::Retransmit(Resent::Syn) => "syn",
            Self::Retransmit(Resent::Fast) => "fast",
            Self::Retransmit(Resent::Timeout) => "timeout",
            Self::Retransmit(Resent::Probe) => "probe",
            Self::TimeWait => "segment",
            Self::Drop(reason) => reason.name(),
        }
    }
}

/// One event.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Event {
    /// Its number among those of its kind, counted from 0.
    pub serial: u64,
    /// When.
    pub at: Instant,
    /// What happened.
    pub what: What,
    /// In which state the connection was.
    pub state: State,
    /// The flags of a segment that came for no open connection; otherwise none.
    pub flags: TcpFlags,
    /// Our end.
    pub local: Endpoint,
    /// The peer's.
    pub remote: Endpoint,
}

/// The events that are remembered.
#[derive(Default)]
pub(crate) struct Journal {
    kinds: [VecDeque<Event>; EventKind::ALL.len()],
    /// Shared with other stacks, if they count too.
    numbers: Arc<EventNumbers>,
}

impl Journal {
    /// Remembers an event; the oldest of its kind makes room. Where there is no memory it is
    /// only counted.
    #[cold]
    pub fn note(
        &mut self,
        at: Instant,
        what: What,
        state: State,
        flags: TcpFlags,
        tuple: &FourTuple,
    ) {
        let serial = self.numbers.take(what.kind());
        let events = &mut self.kinds[what.kind() as usize];
        if events.len() == JOURNAL_EVENTS_MAX {
            events.pop_front();
        }
        if events.try_reserve(1).is_err() {
            events.clear();
            return;
        }
        events.push_back(Event {
            serial,
            at,
            what,
            state,
            flags,
            local: tuple.local,
            remote: tuple.remote,
        });
    }

    /// From now on numbers are taken from `shared`.
    pub fn number_by(&mut self, shared: Arc<EventNumbers>) {
        self.numbers = shared;
    }

    /// Of one kind after the other, the oldest first.
    pub fn events(&self) -> impl Iterator<Item = &Event> {
        self.kinds.iter().flatten()
    }
}

/// A number that was seen before the journals were read: those with lower ones were in them.
pub type EventsEnd = (EventKind, u64);

/// The events of journals that share their numbers, the oldest first. The numbers of a kind have
/// no gaps: older ones are left out where a journal has forgotten one, and those from the
/// kind's end on, which not all journals may show yet.
pub fn merged(events: &[Event], ends: &[EventsEnd]) -> Vec<Event> {
    let of_kind = |(kind, end): &EventsEnd| {
        let known = events.iter();
        let known = known.filter(|event| event.what.kind() == *kind && event.serial < *end);
        without_gaps(known.copied().collect())
    };
    let mut all: Vec<_> = ends.iter().flat_map(of_kind).collect();
    all.sort_by_key(|event| event.at);
    all
}

/// The events of one kind behind the last number that is missing.
fn without_gaps(mut events: Vec<Event>) -> Vec<Event> {
    events.sort_unstable_by_key(|event| event.serial);
    let is_gap = |pair: &[Event]| matches!(pair, [a, b] if a.serial + 1 != b.serial);
    let first = events.windows(2).rposition(is_gap).map_or(0, |at| at + 1);
    events.split_off(first)
}

#[cfg(test)]
mod tests {
    use core::net::Ipv4Addr;

    use super::*;

    fn tuple() -> FourTuple {
        let end = |port| Endpoint::v4(Ipv4Addr::LOCALHOST, port);
        FourTuple {
            local: end(80),
            remote: end(1024),
        }
    }

    fn note(journal: &mut Journal, what: What) {
        journal.note(
            Instant::START,
            what,
            State::TimeWait,
            TcpFlags::SYN,
            &tuple(),
        );
    }

    fn serials(journal: &Journal, kind: EventKind) -> Vec<u64> {
        let events = journal.events().filter(|event| event.what.kind() == kind);
        events.map(|event| event.serial).collect()
    }

    #[test]
    fn journals_that_share_numbers_give_each_event_its_own() {
        let numbers = Arc::<EventNumbers>::default();
        let mut journals = [Journal::default(), Journal::default()];
        journals
            .iter_mut()
            .for_each(|one| one.number_by(numbers.clone()));
        for index in [0, 1, 1, 0] {
            note(&mut journals[index], What::TimeWait);
        }
        let serials = journals.map(|one| serials(&one, EventKind::TimeWait));
        assert_eq!(serials, [[0, 3], [1, 2]]);
    }

    #[test]
    fn merged_journals_begin_behind_the_last_event_that_one_has_forgotten() {
        let numbers = Arc::<EventNumbers>::default();
        let mut journals = [Journal::default(), Journal::default()];
        journals
            .iter_mut()
            .for_each(|one| one.number_by(numbers.clone()));
        note(&mut journals[1], What::TimeWait);
        for _ in 0..=JOURNAL_EVENTS_MAX {
            note(&mut journals[0], What::TimeWait);
        }
        note(&mut journals[1], What::TimeWait);
        let all: Vec<_> = journals.iter().flat_map(Journal::events).copied().collect();
        let end = numbers.next(EventKind::TimeWait);
        let shown = |end| -> Vec<u64> {
            let merged = merged(&all, &[(EventKind::TimeWait, end)]);
            merged.iter().map(|event| event.serial).collect()
        };
        // Number 1 is forgotten, so 0 is left out.
        assert_eq!(shown(end), (2..end).collect::<Vec<_>>());
        assert_eq!(shown(end - 1), (2..end - 1).collect::<Vec<_>>(), "not yet");
    }

    #[test]
    fn the_last_events_are_kept_and_their_numbers_have_no_gaps() {
        let mut journal = Journal::default();
        for count in 0..3 * JOURNAL_EVENTS_MAX as u64 {
            note(&mut journal, What::TimeWait);
            let kept = serials(&journal, EventKind::TimeWait);
            let first = (count + 1).saturating_sub(JOURNAL_EVENTS_MAX as u64);
            assert_eq!(kept, (first..=count).collect::<Vec<_>>());
        }
    }

    #[test]
    fn healthy_traffic_does_not_push_out_what_went_wrong() {
        let mut journal = Journal::default();
        note(&mut journal, What::Retransmit(Resent::Timeout));
        note(&mut journal, What::Drop(DropReason::NoSocket));
        for _ in 0..10 * JOURNAL_EVENTS_MAX {
            note(&mut journal, What::TimeWait);
        }
        assert_eq!(serials(&journal, EventKind::Retransmit), [0]);
        assert_eq!(serials(&journal, EventKind::Drop), [0]);
        let kept = serials(&journal, EventKind::TimeWait);
        assert_eq!(kept.len(), JOURNAL_EVENTS_MAX);
    }
}
