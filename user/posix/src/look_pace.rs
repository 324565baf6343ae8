//! How often somebody looks after frames that a program has left lying, and that come while it is elsewhere.
//!
//! A program under load is in the library all the time: what lies there leaves with its own turns, and each look is an alarm, two
//! switches and under a hypervisor some exits for nothing. So where it did much since the last look the next one comes
//! twice as late, up to a bound; they come at whole multiples of that time, as the kernel's own alarms do. A program that goes elsewhere then has left something lying for as long, once.

use base::Instant;

use crate::sending::LOOK_NANOS;

/// So many turns and sends in a period are much: the program was never elsewhere for long.
const MANY_STEPS: u64 = 64;
/// Periods between two looks. Who lists sockets waits for a look, and one period longer if the program has the lock then.
const PERIODS_MAX: u64 = 4;
/// Periods between two questions whether the link is gone.
const PERIODS_PER_REVOCATION: u64 = 8;

/// See the module.
pub struct LookPace {
    periods: u64,
    /// Periods since it was asked whether the link is gone.
    unasked: u64,
}

/// Of who has just begun to look.
impl Default for LookPace {
    fn default() -> Self {
        Self {
            periods: 1,
            unasked: PERIODS_PER_REVOCATION,
        }
    }
}

impl LookPace {
    /// A look: whether it is time to ask whether the link is gone.
    pub fn begin_look(&mut self) -> bool {
        self.unasked += self.periods;
        let is_due = self.unasked >= PERIODS_PER_REVOCATION;
        if is_due {
            self.unasked = 0;
        }
        is_due
    }

    /// So much was done since the last one.
    pub fn note(&mut self, steps: u64) {
        self.periods = match steps >= MANY_STEPS * self.periods {
            true => (self.periods * 2).min(PERIODS_MAX),
            false => 1,
        };
    }

    /// When the next one is.
    pub fn next_look(&self, now: Instant) -> Instant {
        look_after(now, self.periods)
    }
}

/// The first look after `now` of those at whole multiples of so many periods.
pub fn look_after(now: Instant, periods: u64) -> Instant {
    let spacing = periods * LOOK_NANOS;
    Instant::from_nanos((now.as_nanos() / spacing + 1) * spacing)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How many periods pass before each of the next looks, with so much done in each period.
    fn periods(pace: &mut LookPace, steps: u64, looks: usize) -> Vec<u64> {
        let mut passed = 1;
        let mut look = || {
            pace.begin_look();
            pace.note(steps * passed);
            let now = Instant::from_nanos(5 * LOOK_NANOS + 7);
            passed = pace.next_look(now).as_nanos() / LOOK_NANOS - 5;
            passed
        };
        (0..looks).map(|_| look()).collect()
    }

    #[test]
    fn looks_are_rare_while_the_program_does_much_and_frequent_again_at_once() {
        let mut pace = LookPace::default();
        // From the fifth period on to the sixth, and from there on to the eighth.
        assert_eq!(periods(&mut pace, 200, 5), [1, 3, 3, 3, 3]);
        assert_eq!(periods(&mut pace, 0, 2), [1, 1]);
        assert_eq!(periods(&mut pace, 8, 100), [1; 100]);
    }

    #[test]
    fn a_link_that_is_gone_is_found_at_the_first_look_and_in_eight_periods() {
        let mut pace = LookPace::default();
        let mut asked = |steps| {
            let is_asked = pace.begin_look();
            pace.note(steps);
            is_asked
        };
        let looks: Vec<bool> = [0; 10].map(&mut asked).into();
        let due: Vec<usize> = (0..10).filter(|look| looks[*look]).collect();
        assert_eq!(due, [0, 8]);
        // One, two and four periods later, and one had passed.
        let looks = [1000; 4].map(&mut asked);
        assert_eq!(looks, [false, false, true, false]);
    }
}
