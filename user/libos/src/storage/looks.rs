//! Looking for a completion instead of sleeping until it comes.
//!
//! # Problem
//! Who sleeps for one transfer pays for the sleep, for what the interrupt does then and for the switch back: several times the transfer
//! itself (`docs/vsa.md`, "What a transfer on a ring costs").
//!
//! # Idea
//! The completion of a function of the program's own is written to its memory by the device. So who has nothing else to do looks for a
//! while, and sleeps when none has come, by the kernel's rule (`cpuidle`): looks that were in vain are left out more and more often,
//! and a sleep that was short brings them back. What others on the processor lose is [`LOOK_MAX`] for a transfer, and a 64th of that
//! where the device takes longer.
//!
//! Not where the kernel completes transfers, as on an area's ring: it does so on a processor that looks only keep busy, from an
//! interrupt that they do not save, and who hands over and waits in one call makes one less than who hands over and looks.

use std::hint;

use base::{Duration, Instant};
use cpuidle::HaltPoll;
use rt::Clock;

/// Twice what a disk of flash takes, as guests of Linux poll before they halt (haltpoll).
const LOOK_MAX: Duration = Duration::from_micros(200);

/// What looking was worth so far.
#[derive(Clone, Copy, Default, Debug)]
pub struct Looks {
    poll: HaltPoll,
    asleep_since: Option<Instant>,
}

impl Looks {
    /// Whether the next wait should begin with looks; each wait asks once.
    pub fn are_due(&mut self) -> bool {
        self.poll.is_due()
    }

    /// What became of them.
    pub fn note(&mut self, has_ended: bool) {
        self.poll.note_poll(has_ended);
    }

    /// The wait goes on asleep.
    pub fn sleep(&mut self) {
        self.asleep_since = Some(now());
    }

    /// Something has ended.
    pub fn wake(&mut self) {
        if let Some(since) = self.asleep_since.take() {
            self.poll.note_halt(now().since(since), LOOK_MAX);
        }
    }
}

/// A time in which somebody looks.
#[derive(Debug)]
pub struct Look {
    end: Instant,
    clock: Clock,
}

impl Look {
    /// From now on.
    pub fn begin() -> Self {
        Self {
            end: now() + LOOK_MAX,
            clock: Clock::new(),
        }
    }

    /// Between two looks; true when it is over.
    #[inline]
    pub fn is_over(&mut self) -> bool {
        hint::spin_loop();
        self.clock.now() >= self.end.as_nanos()
    }
}

fn now() -> Instant {
    Instant::from_nanos(rt::monotonic_nanos())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_look_is_over_after_a_while() {
        let mut look = Look::begin();
        while !look.is_over() {}
        assert!(now() >= look.end);
    }

    #[test]
    fn looks_in_vain_are_left_out_and_a_short_sleep_brings_them_back() {
        let mut looks = Looks::default();
        let looked = (0..200).filter(|_| {
            let are_due = looks.are_due();
            if are_due {
                looks.note(false);
            }
            are_due
        });
        let looked = looked.count();
        assert!((2..20).contains(&looked), "{looked}");
        assert!(!looks.are_due());
        looks.asleep_since = Some(Instant::from_nanos(u64::MAX));
        looks.wake();
        assert!(looks.are_due());
    }
}
