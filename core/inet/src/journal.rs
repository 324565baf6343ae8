//! The last things that went wrong with TCP, or looked like it, each with its connection.
//!
//! Counters say how often something happens; to find out why, one must know to whom, and in
//! which state. So the last few hundred such events are remembered, always: whoever looks
//! for them afterwards finds them, and nobody has to be told before. Each has a number, so
//! that a reader who comes again knows which are new, and how many it missed.
//!
//! Stacks that share a machine share the numbers too, so that their events have one order.
//!
//! Invariant: the numbers of what is remembered grow; a stack by itself leaves no gaps.
//! Not here: what each stands for (`counters`), packets (a sniffer's work), SYNs beyond
//! the unsolicited share (`unsolicited`): a flood of them would push out all else.

use alloc::collections::VecDeque;
use alloc::sync::Arc;
use core::sync::atomic::{AtomicU64, Ordering};

use base::Instant;
use wire::TcpFlags;

use crate::addr::{Endpoint, FourTuple};
use crate::counters::DropReason;
use crate::tcp::State;

/// As many events are remembered.
pub const JOURNAL_EVENTS_MAX: usize = 512;

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
    /// The name of its kind, and of the reason.
    pub const fn names(self) -> (&'static str, &'static str) {
        match self {
            Self::Retransmit(why) => (
                "retransmit",
                match why {
                    Resent::Syn => "syn",
                    Resent::Fast => "fast",
                    Resent::Timeout => "timeout",
                    Resent::Probe => "probe",
                },
            ),
            Self::TimeWait => ("time_wait", "segment"),
            Self::Drop(reason) => ("drop", reason.name()),
        }
    }
}

/// One event.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Event {
    /// Its number, counted from 0.
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
    events: VecDeque<Event>,
    next: u64,
    /// The next number, if other stacks count too.
    shared: Option<Arc<AtomicU64>>,
}

impl Journal {
    /// Remembers an event; the oldest makes room. Where there is no memory it is only counted.
    #[cold]
    pub fn note(
        &mut self,
        at: Instant,
        what: What,
        state: State,
        flags: TcpFlags,
        tuple: &FourTuple,
    ) {
        let serial = self.number();
        if self.events.len() == JOURNAL_EVENTS_MAX {
            self.events.pop_front();
        }
        if self.events.try_reserve(1).is_err() {
            self.events.clear();
            return;
        }
        self.events.push_back(Event {
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
    pub fn number_by(&mut self, shared: Arc<AtomicU64>) {
        self.shared = Some(shared);
    }

    fn number(&mut self) -> u64 {
        if let Some(shared) = &self.shared {
            return shared.fetch_add(1, Ordering::Relaxed);
        }
        self.next += 1;
        self.next - 1
    }

    /// The oldest first.
    pub fn events(&self) -> impl Iterator<Item = &Event> {
        self.events.iter()
    }
}

#[cfg(test)]
mod tests {
    use core::net::Ipv4Addr;

    use super::*;

    #[test]
    fn journals_that_share_numbers_give_each_event_its_own() {
        let numbers = Arc::<AtomicU64>::default();
        let end = Endpoint::v4(Ipv4Addr::LOCALHOST, 80);
        let tuple = FourTuple {
            local: end,
            remote: end,
        };
        let mut journals = [Journal::default(), Journal::default()];
        journals
            .iter_mut()
            .for_each(|one| one.number_by(numbers.clone()));
        for index in [0, 1, 1, 0] {
            let (what, state) = (What::TimeWait, State::TimeWait);
            journals[index].note(Instant::START, what, state, TcpFlags::SYN, &tuple);
        }
        let serials = journals.map(|one| {
            one.events()
                .map(|event| event.serial)
                .collect::<alloc::vec::Vec<_>>()
        });
        assert_eq!(serials, [alloc::vec![0, 3], alloc::vec![1, 2]]);
    }

    #[test]
    fn the_last_events_are_kept_and_their_numbers_have_no_gaps() {
        let end = |port| Endpoint::v4(Ipv4Addr::LOCALHOST, port);
        let tuple = FourTuple {
            local: end(80),
            remote: end(1024),
        };
        let mut journal = Journal::default();
        for count in 0..3 * JOURNAL_EVENTS_MAX as u64 {
            let at = Instant::from_nanos(count);
            journal.note(at, What::TimeWait, State::TimeWait, TcpFlags::SYN, &tuple);
            let kept = journal.events().count();
            assert_eq!(kept, (count as usize + 1).min(JOURNAL_EVENTS_MAX));
            let mut serials = journal.events().map(|event| event.serial);
            let first = serials.next().unwrap_or(0);
            assert_eq!(first + kept as u64, count + 1);
            assert!(serials.zip(first + 1..).all(|(serial, due)| serial == due));
        }
    }
}
