//! Whether a CPU without work polls before it halts.
//!
//! # Problem
//! Under a hypervisor a halt is an exit, and so are the interrupt that ends it and what
//! acknowledges that; a server whose next request is a moment away pays them for every request.
//! Where the next one is far away, polling is time taken from others.
//!
//! # Idea
//! Polling lasts no longer than what it saves costs, so that it at most doubles the price of a
//! halt (the ski-rental problem). And it is done only while it pays: each poll that finds
//! nothing doubles the halts that go unpolled before the next attempt, each that finds work
//! halves them again. A halt that ended within the time of a poll says that polling would have paid.
//! Linux's haltpoll governor changes the length of the poll instead.
//!
//! # Not here
//! What a halt costs, the clock, and where work may come from: the caller knows.
#![no_std]
#![forbid(unsafe_code)]

use base::Duration;

/// Halts without a poll, at most, until the next attempt.
const UNPOLLED_MAX: u8 = 64;

/// What one CPU has learned from its last polls.
#[derive(Clone, Copy, Debug, Default)]
pub struct HaltPoll {
    /// Halts without a poll after the next one that finds nothing.
    backoff: u8,
    /// Those still to come.
    unpolled: u8,
}

impl HaltPoll {
    /// Of a CPU that never halted: it polls.
    pub const fn new() -> Self {
        Self {
            backoff: 0,
            unpolled: 0,
        }
    }

    /// The CPU has nothing to do: whether it polls before it halts.
    #[inline]
    pub fn is_due(&mut self) -> bool {
        let is_due = self.unpolled == 0;
        self.unpolled = self.unpolled.saturating_sub(1);
        is_due
    }

    /// Whether the last polls found work: the next rest is likely to be short.
    #[inline]
    pub fn pays(&self) -> bool {
        self.backoff == 0
    }

    /// A poll is over.
    #[inline]
    pub fn note_poll(&mut self, found_work: bool) {
        if found_work {
            self.backoff /= 2;
        } else {
            self.backoff = (self.backoff * 2).clamp(1, UNPOLLED_MAX);
            self.unpolled = self.backoff;
        }
    }

    /// A halt is over that took so long, where a poll lasts `limit`.
    #[inline]
    pub fn note_halt(&mut self, length: Duration, limit: Duration) {
        if length <= limit {
            self.backoff /= 2;
            self.unpolled = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: Duration = Duration::from_micros(6);

    /// How many of 1000 rests are polled where work comes after each of `gaps` in turn.
    fn polled(gaps: &[Duration]) -> u32 {
        let (mut poll, mut count) = (HaltPoll::new(), 0);
        for gap in gaps.iter().cycle().take(1000) {
            if poll.is_due() {
                count += 1;
                poll.note_poll(*gap <= LIMIT);
                continue;
            }
            poll.note_halt(*gap, LIMIT);
        }
        count
    }

    #[test]
    fn a_cpu_that_is_needed_again_at_once_always_polls() {
        assert_eq!(polled(&[Duration::from_micros(2)]), 1000);
    }

    #[test]
    fn a_cpu_that_is_not_polls_in_one_rest_of_sixty_five() {
        assert!(polled(&[Duration::from_millis(1)]) <= 1000 / 65 + 7);
    }

    #[test]
    fn polling_goes_on_where_it_pays_as_often_as_not() {
        let gaps = [Duration::from_micros(2), Duration::from_millis(1)];
        assert!(polled(&gaps) >= 500);
    }

    #[test]
    fn a_short_halt_brings_polling_back() {
        let mut poll = HaltPoll::new();
        (0..10).for_each(|_| poll.note_poll(false));
        assert!(!poll.is_due());
        poll.note_halt(LIMIT, LIMIT);
        assert!(poll.is_due());
    }
}
