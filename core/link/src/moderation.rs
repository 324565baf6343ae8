//! Interrupt moderation: N interrupts a second at most means 1/N seconds between two.
//!
//! Cards count in their own units (1 µs in Intel's 82576, 256 ns in the 82540), so the
//! spacing is rounded up to them: never more interrupts than asked for. Cards that do
//! not moderate are moderated by when the owner arms them again ([`Throttle`]).

use base::{Duration, Instant};

const NANOS_PER_SECOND: u64 = 1_000_000_000;

/// A limit of interrupts.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Moderation {
    /// Interrupts a second; zero for no limit.
    pub per_second_max: u32,
}

impl Moderation {
    /// The least time between two interrupts.
    pub const fn spacing(self) -> Duration {
        match self.per_second_max {
            0 => Duration::ZERO,
            most => Duration::from_nanos(NANOS_PER_SECOND.div_ceil(most as u64)),
        }
    }

    /// The spacing in a card's units of `unit_nanos` (not zero), at most `limit` of them.
    pub fn units(self, unit_nanos: u64, limit: u16) -> u16 {
        let nanos = self.spacing().as_nanos();
        u16::try_from(nanos.div_ceil(unit_nanos)).map_or(limit, |units| units.min(limit))
    }
}

/// Keeps interrupts apart where the card does not.
#[derive(Clone, Copy, Debug)]
pub struct Throttle {
    spacing: Duration,
    last: Option<Instant>,
}

impl Throttle {
    /// With the limit of `moderation`; the first interrupt may come at once.
    pub const fn new(moderation: Moderation) -> Self {
        Self {
            spacing: moderation.spacing(),
            last: None,
        }
    }

    /// An interrupt came.
    pub fn interrupted(&mut self, now: Instant) {
        self.last = Some(now);
    }

    /// When the ring may be armed; `None` if it may be at once.
    pub fn wait_until(&self, now: Instant) -> Option<Instant> {
        let next = self.last? + self.spacing;
        (next > now).then_some(next)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn eight_thousand_a_second_are_125_microseconds_apart() {
        let moderation = Moderation {
            per_second_max: 8000,
        };
        assert_eq!(moderation.spacing(), Duration::from_micros(125));
        assert_eq!(moderation.units(1000, 4095), 125);
        assert_eq!(moderation.units(256, u16::MAX), 489);
    }

    #[test]
    fn spacing_is_rounded_up_and_limited_to_what_the_card_counts() {
        let odd = Moderation { per_second_max: 3 };
        assert_eq!(odd.spacing().as_nanos(), 333_333_334);
        assert_eq!(odd.units(1000, 4095), 4095);
        assert_eq!(Moderation { per_second_max: 0 }.units(1000, 4095), 0);
    }

    #[test]
    fn a_throttled_ring_interrupts_no_more_often_than_allowed() {
        let mut throttle = Throttle::new(Moderation {
            per_second_max: 8000,
        });
        let (mut now, mut interrupts) = (Instant::from_millis(1), 0);
        while now < Instant::from_millis(1001) {
            match throttle.wait_until(now) {
                Some(later) => now = later,
                None => {
                    interrupts += 1;
                    throttle.interrupted(now);
                    now += Duration::from_nanos(700);
                }
            }
        }
        assert_eq!(interrupts, 8000);
    }
}
