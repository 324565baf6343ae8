//! What is appended and not durable yet, entry by entry.

use alloc::collections::VecDeque;

use block::{Done, Flushed, Written};

use crate::planted::{Bug, planted};
use crate::shape::Place;

/// Entries that may be under way.
pub(crate) const ENTRIES_MAX: usize = 1024;

/// One write of an entry. There are two if it passes the ring's end.
#[derive(Debug)]
pub(crate) enum Part {
    /// There is no such write.
    None,
    /// It is to be handed out.
    Waiting,
    /// The device has it.
    UnderWay,
    /// The device has completed it; so many flushes had been sent by then.
    Accepted(Written, u64),
    /// It survives.
    Durable,
}

/// An entry.
#[derive(Debug)]
pub(crate) struct Slot {
    pub start: Place,
    pub end: Place,
    /// Somebody waits for it to be durable.
    pub is_wanted: bool,
    pub parts: [Part; 2],
}

/// What a flush has made of an entry or an anchor.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Settled {
    /// As it should.
    Fine,
    /// It was complete before the flush was sent, and the flush does not cover it: another one failed.
    Condemned,
}

impl Part {
    pub fn is_accepted(&self) -> bool {
        matches!(self, Self::None | Self::Accepted(..) | Self::Durable)
    }

    pub fn is_durable(&self) -> bool {
        match self {
            Self::None | Self::Durable => true,
            Self::Accepted(..) => planted(Bug::DurableAtAccept),
            _ => false,
        }
    }

    /// It has ended well, if it was under way and `done` is the end of a write.
    pub fn ended(&mut self, done: Done, flushes_sent: u64) -> bool {
        let next = match (&self, done) {
            (Self::UnderWay, Done::Written(written)) => Self::Accepted(written, flushes_sent),
            (Self::UnderWay, Done::Durable(_)) => Self::Durable,
            _ => return false,
        };
        *self = next;
        true
    }

    /// The `number`-th flush has succeeded.
    pub fn settle(&mut self, flushed: &Flushed, number: u64) -> Settled {
        let Self::Accepted(written, sent) = self else {
            return Settled::Fine;
        };
        let is_lie =
            planted(Bug::FlushCoversLater) || planted(Bug::FailureIgnored) && *sent < number;
        if flushed.covers(written) || is_lie {
            *self = Self::Durable;
            return Settled::Fine;
        }
        match *sent < number {
            true => Settled::Condemned,
            false => Settled::Fine,
        }
    }
}

/// All of them, in order. What is at the front is not durable.
#[derive(Debug, Default)]
pub(crate) struct Flight {
    slots: VecDeque<Slot>,
    /// Writes handed out of so many entries, as a prefix.
    handed_out: usize,
}

impl Flight {
    pub fn len(&self) -> usize {
        self.slots.len()
    }

    pub fn push(&mut self, slot: Slot) {
        self.slots.push_back(slot);
    }

    /// The next write to be handed out: its entry and which part.
    pub fn next_waiting(&mut self) -> Option<(&mut Slot, usize)> {
        let is_waiting = |part: &Part| matches!(part, Part::Waiting);
        while let Some(slot) = self.slots.get(self.handed_out) {
            if slot.parts.iter().any(is_waiting) {
                break;
            }
            self.handed_out += 1;
        }
        let slot = self.slots.get_mut(self.handed_out)?;
        let part = slot.parts.iter().position(is_waiting)?;
        Some((slot, part))
    }

    /// The entry of this number.
    pub fn slot(&mut self, sequence: u64) -> Option<&mut Slot> {
        let first = self.slots.front()?.start.sequence;
        let at = usize::try_from(sequence.checked_sub(first)?).ok()?;
        self.slots.get_mut(at)
    }

    /// The entries that somebody waits for, up to this number.
    pub fn want(&mut self, sequence: u64) {
        if let Some(slot) = self.slot(sequence) {
            slot.is_wanted = true;
        }
    }

    /// The place behind the last of the entries from the front on for which `holds`.
    fn prefix(&self, holds: impl Fn(&Slot) -> bool) -> Option<Place> {
        let prefix = self.slots.iter().take_while(|slot| holds(slot));
        prefix.last().map(|slot| slot.end)
    }

    pub fn submitted(&self) -> Option<Place> {
        self.prefix(|slot| !slot.parts.iter().any(|part| matches!(part, Part::Waiting)))
    }

    pub fn accepted(&self) -> Option<Place> {
        self.prefix(|slot| slot.parts.iter().all(Part::is_accepted))
    }

    /// Whether somebody waits for one of the entries that a flush would make durable.
    pub fn is_flush_wanted(&self) -> bool {
        let accepted = |slot: &&Slot| slot.parts.iter().all(Part::is_accepted);
        let mut prefix = self.slots.iter().take_while(accepted);
        prefix.any(|slot| slot.is_wanted)
    }

    /// Forgets what is durable at the front; the place behind it.
    pub fn pop_durable(&mut self) -> Option<Place> {
        let mut end = None;
        while let Some(slot) = self.slots.front()
            && slot.parts.iter().all(Part::is_durable)
        {
            end = Some(slot.end);
            self.slots.pop_front();
            self.handed_out = self.handed_out.saturating_sub(1);
        }
        end
    }

    /// A flush has succeeded.
    pub fn settle(&mut self, flushed: &Flushed, number: u64) -> Settled {
        let parts = self.slots.iter_mut().flat_map(|slot| &mut slot.parts);
        let settled = parts.map(|part| part.settle(flushed, number));
        let worst = settled
            .filter(|settled| *settled == Settled::Condemned)
            .last();
        worst.unwrap_or(Settled::Fine)
    }
}
