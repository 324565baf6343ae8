//! How long a card is looked at before it is armed.
//!
//! # Problem
//! To arm a card is a write or two to its registers. Under a hypervisor each is an exit, and so are the halt that
//! follows, the interrupt that ends it and the write that masks the next one. The kernel polls before it halts, but does not
//! see the card of a program.
//!
//! # Idea
//! The kernel's rule (`cpuidle`), with what arming takes as the price: measured here, for the shortest is what it takes
//! when nobody disturbs. On hardware that is so little that there is hardly a look.

use base::{Duration, Instant};
use cpuidle::HaltPoll;

/// What a wait costs, in armings.
const ARMINGS_PER_WAIT: u32 = 3;
/// Nobody else has the CPU, nor the program's sockets, for longer.
const LOOK_MAX: Duration = Duration::from_micros(500);

/// What a card's owner has learned of its waits.
#[derive(Debug, Default)]
pub(crate) struct ArmPoll {
    poll: HaltPoll,
    /// The shortest so far.
    arming: Option<Duration>,
    armed_at: Option<Instant>,
}

impl ArmPoll {
    fn limit(&self) -> Duration {
        let price = self.arming.map(|arming| arming * ARMINGS_PER_WAIT);
        price.unwrap_or(Duration::ZERO).min(LOOK_MAX)
    }

    /// Until when to look for frames; `None` where that is unlikely to pay.
    pub(crate) fn begin(&mut self, now: Instant) -> Option<Instant> {
        let is_due = self.arming.is_some() && self.poll.is_due();
        is_due.then(|| now + self.limit())
    }

    /// That is over.
    pub(crate) fn end(&mut self, has_found: bool) {
        self.poll.note_poll(has_found);
    }

    /// The card was armed between these moments.
    pub(crate) fn note_armed(&mut self, before: Instant, after: Instant) {
        let arming = after.since(before);
        self.arming = Some(self.arming.map_or(arming, |least| least.min(arming)));
        self.armed_at = Some(after);
    }

    /// It is looked at again.
    pub(crate) fn note_look(&mut self, now: Instant) {
        if let Some(armed_at) = self.armed_at.take() {
            self.poll.note_halt(now.since(armed_at), self.limit());
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
        let mut poll = ArmPoll::default();
        poll.note_armed(at(0), at(2));
        let wait = |number: &u64| {
            let start = number * 1_000_000;
            let end = poll.begin(at(start));
            let has_found = end.is_some_and(|end| at(start + gap_micros) <= end);
            if end.is_some() {
                poll.end(has_found);
            }
            if !has_found {
                poll.note_armed(at(start + 6), at(start + 9));
            }
            poll.note_look(at(start + 9 + gap_micros));
            end.is_some()
        };
        (1..=1000).filter(wait).count()
    }

    #[test]
    fn a_card_without_a_price_is_armed_at_once() {
        assert_eq!(ArmPoll::default().begin(at(1)), None);
    }

    #[test]
    fn a_look_is_as_long_as_three_of_the_shortest_armings() {
        let mut poll = ArmPoll::default();
        for arming in [7, 2, 9] {
            poll.note_armed(at(100), at(100 + arming));
        }
        assert_eq!(poll.begin(at(1000)), Some(at(1006)));
    }

    #[test]
    fn looks_go_on_while_they_find_frames_and_are_rare_while_they_do_not() {
        assert_eq!(looks(1), 1000);
        assert!(looks(10_000) <= 1000 / 65 + 7);
    }
}
