//! How long a card is looked at before it is armed.
//!
//! # Problem
//! A rest by the kernel is a call, two switches and an interrupt. To arm a card may be a write to a register, too, which
//! under a hypervisor is an exit as the halt that follows and the interrupt are. A server under load has rests of some
//! microseconds and pays all that for each. The kernel polls before it halts, but does not see the card of a program.
//!
//! # Idea
//! Where the last rests were short the next one will be, and a look at memory that lasts as long finds the frames.
//! It lasts twice as long as rests did lately, and is not begun at all unless most of them were short: so a program with
//! little to do, which answers one question and has its acknowledgement a moment later, never looks. Short is what Linux'
//! guests poll for before they halt (haltpoll's `guest_halt_poll_ns`), and its hosts once they have (`kvm.halt_poll_ns`);
//! more where an exit takes so long that everything does.
//!
//! | a rest | what is learned |
//! |---|---|
//! | short, ended by frames | one more |
//! | ended by something else: a thread, a file, a timer | nothing: half as many |
//! | longer | half as many |
//! | much longer | none |
//!
//! A look is time in which nobody else has the CPU: time of the program's own, by which the scheduler counts it.

use base::{Duration, Instant};

/// A short rest is as long as so many exits,
const EXITS_PER_REST: u32 = 32;
/// and between these.
const SHORT_LEAST: Duration = Duration::from_micros(200);
const SHORT_MOST: Duration = Duration::from_millis(2);
/// A rest of so many short ones says that nothing is as it was.
const SILENCE: u32 = 16;
/// So many short rests more than others, until there is a look before the next one; and as many are remembered.
const ENOUGH: u8 = 8;
const REMEMBERED: u8 = 32;
/// A look is not worth its clock for less.
const LOOK_LEAST: Duration = Duration::from_micros(20);

/// What a card's owner has learned of its rests.
#[derive(Debug)]
pub(crate) struct ArmPoll {
    short: Duration,
    /// Short rests, less what others took from them.
    score: u8,
    /// How long a look is worth it.
    look: Duration,
    /// When the rest began that is not over.
    rest: Option<Instant>,
}

impl ArmPoll {
    /// Where an exit takes so long.
    pub(crate) fn new(exit: Duration) -> Self {
        Self {
            short: (exit * EXITS_PER_REST).clamp(SHORT_LEAST, SHORT_MOST),
            score: 0,
            look: Duration::ZERO,
            rest: None,
        }
    }

    /// A rest begins, or another thread's goes on: until when to look for frames; `None` where that is unlikely to pay.
    pub(crate) fn begin(&mut self, now: Instant) -> Option<Instant> {
        self.rest.get_or_insert(now);
        (self.score >= ENOUGH).then(|| now + self.look)
    }

    /// What was begun was no rest.
    pub(crate) fn forget(&mut self) {
        self.rest = None;
    }

    /// The rest is over, if there was one: by frames, or by something else.
    pub(crate) fn end(&mut self, now: Instant, has_frames: bool) {
        let Some(began) = self.rest.take() else {
            return;
        };
        let length = now.since(began);
        if length > self.short * SILENCE {
            self.score = 0;
        } else if length > self.short || !has_frames {
            self.score /= 2;
        } else {
            self.score = (self.score + 1).min(REMEMBERED);
            let kept = self.look - self.look / 8;
            self.look = kept.max(length * 2).clamp(LOOK_LEAST, self.short);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A card's owner, and its clock.
    struct Owner {
        poll: ArmPoll,
        now: Instant,
        looks: usize,
        looked: Duration,
        waits: usize,
    }

    impl Owner {
        fn new(exit_micros: u64) -> Self {
            Self {
                poll: ArmPoll::new(Duration::from_micros(exit_micros)),
                now: Instant::from_nanos(1_000_000),
                looks: 0,
                looked: Duration::ZERO,
                waits: 0,
            }
        }

        /// A rest that ends after so long, by frames or not.
        fn rest(&mut self, micros: u64, has_frames: bool) {
            let over = self.now + Duration::from_micros(micros);
            let end = self.poll.begin(self.now);
            if let Some(end) = end {
                self.looks += 1;
                self.looked += over.min(end).since(self.now);
            }
            self.waits += usize::from(!has_frames || end.is_none_or(|end| end < over));
            self.poll.end(over, has_frames);
            self.now = over + Duration::from_micros(10);
        }

        fn rests(&mut self, all: &[u64], times: usize) {
            for _ in 0..times {
                all.iter().for_each(|micros| self.rest(*micros, true));
            }
        }
    }

    #[test]
    fn who_is_loaded_looks_and_waits_no_more() {
        let mut owner = Owner::new(0);
        owner.rests(&[30, 90, 15, 60], 250);
        assert!(owner.waits <= 8 + 1, "{} waits", owner.waits);
        // A long one now and then is a wait, and no more than that.
        owner.waits = 0;
        owner.rests(&[30, 30, 30, 30, 30, 30, 30, 30, 30, 300], 100);
        assert!(owner.waits <= 100 + 1, "{} waits", owner.waits);
    }

    #[test]
    fn who_has_little_to_do_never_looks() {
        for rests in [
            &[10_000][..],
            // A question, and the acknowledgement of its answer.
            &[50, 10_000],
            &[50, 50, 50, 50, 50, 10_000],
            // Too far apart for a look, but not by much.
            &[300],
            &[50, 300],
        ] {
            let mut owner = Owner::new(0);
            owner.rests(rests, 1000);
            assert_eq!(owner.looks, 0, "{rests:?}");
        }
    }

    #[test]
    fn a_look_in_vain_is_twice_as_long_as_rests_were_and_a_silence_ends_all() {
        let mut owner = Owner::new(0);
        owner.rests(&[40], 100);
        (owner.looks, owner.looked) = (0, Duration::ZERO);
        owner.rest(10_000_000, true);
        assert_eq!((owner.looks, owner.looked), (1, Duration::from_micros(80)));
        owner.rests(&[40], 7);
        assert_eq!(owner.looks, 1);
    }

    #[test]
    fn a_look_becomes_shorter_with_the_rests() {
        let mut owner = Owner::new(0);
        owner.rests(&[150], 20);
        owner.rests(&[5], 50);
        let end = owner.poll.begin(owner.now).unwrap();
        assert_eq!(end.since(owner.now), LOOK_LEAST);
    }

    #[test]
    fn what_ends_by_something_else_is_no_reason_to_look() {
        let mut owner = Owner::new(0);
        owner.rests(&[40], 100);
        (0..3).for_each(|_| owner.rest(40, false));
        owner.looks = 0;
        // As a server whose application is on the same CPU.
        for _ in 0..1000 {
            owner.rest(40, true);
            owner.rest(40, false);
        }
        assert_eq!(owner.looks, 0);
    }

    #[test]
    fn short_is_so_many_exits_and_bounded() {
        let short = |exit| ArmPoll::new(exit).short;
        assert_eq!(short(Duration::from_micros(1)), SHORT_LEAST);
        assert_eq!(short(Duration::from_micros(20)), Duration::from_micros(640));
        assert_eq!(short(Duration::from_secs(2)), SHORT_MOST);
    }

    #[test]
    fn the_end_of_no_rest_says_nothing() {
        let mut poll = ArmPoll::new(Duration::ZERO);
        (0..100).for_each(|_| poll.end(Instant::from_nanos(5), true));
        assert!(poll.begin(Instant::from_nanos(9)).is_none());
    }
}
