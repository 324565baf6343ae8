//! How long a card is looked at before it is armed.
//!
//! # Problem
//! To arm a card may be a write to a register. Under a hypervisor that is an exit, and so are the halt that
//! follows, the interrupt that ends it and what ends that. The kernel polls before it halts, but does not
//! see the card of a program.
//!
//! # Idea
//! The kernel's rule (`cpuidle`), with exits as the price. What arming itself takes is not: some cards are armed by a word of
//! memory, and interrupt all the same. On hardware so many are so little that there is hardly a look.

use base::{Duration, Instant};
use cpuidle::HaltPoll;

/// What a wait costs, in exits: a halt, the interrupt that ends it and its end, and a register, which a program of the host's
/// emulates: as much as three.
const EXITS_PER_WAIT: u32 = 6;
/// Nobody else has the CPU, nor the program's sockets, for longer.
const LOOK_MAX: Duration = Duration::from_micros(500);

/// What a card's owner has learned of its waits.
#[derive(Debug)]
pub(crate) struct ArmPoll {
    poll: HaltPoll,
    limit: Duration,
    armed_at: Option<Instant>,
}

impl ArmPoll {
    /// Where an exit takes so long.
    pub(crate) fn new(exit: Duration) -> Self {
        Self {
            poll: HaltPoll::new(),
            limit: (exit * EXITS_PER_WAIT).min(LOOK_MAX),
            armed_at: None,
        }
    }

    /// Until when to look for frames; `None` where that is unlikely to pay.
    pub(crate) fn begin(&mut self, now: Instant) -> Option<Instant> {
        self.poll.is_due().then(|| now + self.limit)
    }

    /// That is over.
    pub(crate) fn end(&mut self, has_found: bool) {
        self.poll.note_poll(has_found);
    }

    /// The card is armed from now on.
    pub(crate) fn note_armed(&mut self, now: Instant) {
        self.armed_at = Some(now);
    }

    /// It is looked at again.
    pub(crate) fn note_look(&mut self, now: Instant) {
        if let Some(armed_at) = self.armed_at.take() {
            self.poll.note_halt(now.since(armed_at), self.limit);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(micros: u64) -> Instant {
        Instant::from_nanos(1000 * micros)
    }

    /// How many of 1000 waits, between whose beginnings and frames is so much time, begin with a look.
    fn looks(gap_micros: u64) -> usize {
        let mut poll = ArmPoll::new(Duration::from_micros(1));
        let wait = |number: &u64| {
            let start = number * 1_000_000;
            let end = poll.begin(at(start));
            let has_found = end.is_some_and(|end| at(start + gap_micros) <= end);
            if end.is_some() {
                poll.end(has_found);
            }
            if !has_found {
                poll.note_armed(at(start + 9));
            }
            poll.note_look(at(start + 9 + gap_micros));
            end.is_some()
        };
        (1..=1000).filter(wait).count()
    }

    #[test]
    fn a_look_is_as_long_as_what_a_wait_costs_and_bounded() {
        let end = |exit| ArmPoll::new(exit).begin(at(1000));
        assert_eq!(end(Duration::from_micros(2)), Some(at(1012)));
        assert_eq!(end(Duration::from_secs(2)), Some(at(1500)));
    }

    #[test]
    fn looks_go_on_while_they_find_frames_and_are_rare_while_they_do_not() {
        assert_eq!(looks(1), 1000);
        assert!(looks(10_000) <= 1000 / 65 + 7);
    }
}
