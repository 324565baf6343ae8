//! Transmit queues that stand still.
//!
//! # Problem
//! A card that stops sending says nothing: its ring runs full, frames are refused, and
//! connections time out one after another.
//!
//! # Idea
//! Whoever owns a queue looks at it now and then ([`Watchdog::look`]): how many frames the
//! card has, and how many it has finished. A queue that has work and has finished nothing
//! for [`STALL_MAX`] stands still. The driver then resets it and says what came of it
//! ([`Stall`]).
//!
//! Time is an argument. A machine that was stopped and goes on sees time jump, with its card
//! as idle as itself: so two looks are not enough, however far apart.
//!
//! Not here: when somebody looks, and what a reset is.

use base::{Duration, Instant};

use crate::PortCounters;

/// A queue with work that finishes nothing for so long stands still. Linux waits as long.
pub const STALL_MAX: Duration = Duration::from_secs(5);
/// Looks without progress until a queue can stand still, the first one included.
const LOOKS_MIN: u32 = 3;

/// What came of a reset.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Remedy {
    /// The queue is empty and works; what it had is lost.
    Reset,
    /// As `Reset`, and the whole card has forgotten what it was set to:
    /// [`NicControl::restore`](crate::NicControl::restore) sets it again.
    CardReset,
    /// The card was told again of what it has; it has no smaller reset.
    Reminded,
    /// The card does not obey: it keeps what it has, and nothing moves.
    Failed,
}

impl Remedy {
    /// This one, if it worked.
    pub fn if_done<E>(self, outcome: Result<(), E>) -> Self {
        outcome.map_or(Self::Failed, |()| self)
    }
}

/// A queue was found standing still.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Stall {
    /// Frames that the card had.
    pub frames: usize,
    /// How long nothing was finished.
    pub duration: Duration,
    /// What was done.
    pub remedy: Remedy,
}

/// Remembers how far a transmit queue was.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Watchdog {
    finished: u64,
    /// When a look first found the queue as far as now, with work; and how many did.
    since: Option<Instant>,
    looks: u32,
}

impl Watchdog {
    /// Looks at a queue that has not finished `pending` of the frames that were sent. Says how
    /// long it has stood still once that is too long, and counts it; it then has as long
    /// again.
    pub fn look(
        &mut self,
        now: Instant,
        pending: usize,
        counters: &mut PortCounters,
    ) -> Option<Duration> {
        let finished = counters.tx_frames.wrapping_sub(pending as u64);
        let moves = pending == 0 || finished != self.finished;
        let since = self.since.filter(|_| !moves).unwrap_or(now);
        self.looks = if since == now { 1 } else { self.looks + 1 };
        self.finished = finished;
        self.since = (pending != 0).then_some(since);
        let stood = now.since(since);
        let is_stall = stood >= STALL_MAX && self.looks >= LOOKS_MIN;
        is_stall.then(|| {
            self.since = None;
            counters.tx_stalls += 1;
            stood
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A look in this second, at a queue with so many frames that has finished so many.
    fn look(dog: &mut Watchdog, second: u64, pending: usize, finished: u64) -> Option<Duration> {
        let mut counters = PortCounters {
            tx_frames: finished + pending as u64,
            ..PortCounters::default()
        };
        let now = Instant::START + Duration::from_secs(second);
        let found = dog.look(now, pending, &mut counters);
        assert_eq!(counters.tx_stalls, u64::from(found.is_some()));
        found
    }

    #[test]
    fn a_queue_with_work_and_no_progress_for_five_seconds_stands_still() {
        let mut dog = Watchdog::default();
        for second in [0, 2, 4] {
            assert_eq!(look(&mut dog, second, 3, 10), None);
        }
        assert_eq!(look(&mut dog, 6, 3, 10), Some(Duration::from_secs(6)));
    }

    #[test]
    fn an_empty_queue_and_one_that_moves_may_take_their_time() {
        let mut dog = Watchdog::default();
        for second in 0..60 {
            assert_eq!(look(&mut dog, second, 0, 7), None, "empty");
        }
        for second in 60..120 {
            assert_eq!(look(&mut dog, second, 200, second), None, "one a second");
        }
    }

    #[test]
    fn what_was_pending_before_an_empty_queue_does_not_count() {
        let mut dog = Watchdog::default();
        assert_eq!(look(&mut dog, 0, 1, 7), None);
        assert_eq!(look(&mut dog, 4, 0, 7), None);
        for second in [6, 8, 10] {
            assert_eq!(look(&mut dog, second, 1, 7), None);
        }
        assert!(look(&mut dog, 11, 1, 7).is_some());
    }

    #[test]
    fn a_jump_of_time_between_two_looks_is_no_stall() {
        let mut dog = Watchdog::default();
        assert_eq!(look(&mut dog, 0, 1, 7), None);
        assert_eq!(look(&mut dog, 3600, 1, 7), None);
        assert_eq!(look(&mut dog, 3602, 1, 8), None);
    }

    #[test]
    fn a_stall_is_reported_again_only_after_as_long() {
        let mut dog = Watchdog::default();
        let looks = (0..30).filter(|second| look(&mut dog, *second, 1, 7).is_some());
        assert_eq!(looks.count(), 5, "at 5, 11, 17, 23 and 29");
    }
}
