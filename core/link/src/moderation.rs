//! Interrupt moderation: N interrupts a second at most means 1/N seconds between two.
//!
//! Cards count in their own units (1 µs in Intel's 82576, 256 ns in the 82540), so the
//! spacing is rounded up to them: never more interrupts than asked for. Cards that do
//! not moderate are moderated by when the owner arms them again ([`Throttle`]).
//!
//! How far apart is best depends on the load, which nobody tells: a client that waits for each
//! answer wants none of it, a stream of frames is cheaper to take a few at a time. What gives
//! them away is how many frames a ring's interrupt finds ([`Adaptive`]).

use core::fmt;

use base::{Duration, Instant};

use crate::props::PropError;

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

/// What an administrator says of the interrupts of a card.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Throttling {
    /// As far apart as the load suggests.
    #[default]
    Adaptive,
    /// This many at most.
    Fixed(Moderation),
}

/// Interrupts a second that cards can be told: some count up to 8191 microseconds.
const PER_SECOND: core::ops::RangeInclusive<u32> = 123..=1_000_000;

impl Throttling {
    /// From `adaptive`, `off`, or interrupts a second.
    pub fn parse(text: &str) -> Result<Self, PropError> {
        let per_second_max = match text {
            "adaptive" => return Ok(Self::Adaptive),
            "off" => 0,
            number => {
                let number = number.parse().map_err(|_| PropError::BadValue)?;
                let is_possible = PER_SECOND.contains(&number);
                is_possible.then_some(number).ok_or(PropError::OutOfRange)?
            }
        };
        Ok(Self::Fixed(Moderation { per_second_max }))
    }
}

impl fmt::Display for Throttling {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Adaptive => to.write_str("adaptive"),
            Self::Fixed(Moderation { per_second_max: 0 }) => to.write_str("off"),
            Self::Fixed(Moderation { per_second_max }) => write!(to, "{per_second_max}"),
        }
    }
}

/// What a ring's load is like, from one that waits for latency to one that wants throughput.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
enum Load {
    /// Interrupts find a frame each, or are few: clients that wait for answers.
    #[default]
    Latency,
    /// Interrupts find some frames each.
    Mixed,
    /// They find many: streams.
    Bulk,
}

impl Load {
    const fn limit(self) -> Moderation {
        Moderation {
            per_second_max: match self {
                Self::Latency => 0,
                Self::Mixed => 20_000,
                Self::Bulk => 8000,
            },
        }
    }
}

/// Interrupts a second that are worth to be fewer.
const BUSY_PER_SECOND: u64 = 4000;
/// Frames for each interrupt, from which on a load is mixed, and bulk.
const MIXED_FRAMES: u64 = 2;
const BULK_FRAMES: u64 = 8;

/// Chooses the spacing of one ring's interrupts by its load, a window at a time.
///
/// Down is at once, up takes two windows in a row: a client that begins to wait for answers
/// is delayed for one window at most, and a short burst changes nothing. While interrupts
/// find one frame each they are never kept apart: spacing cannot save any, only delay.
#[derive(Clone, Copy, Debug, Default)]
pub struct Adaptive {
    load: Load,
    /// The last window suggested more than holds.
    was_more: bool,
}

impl Adaptive {
    /// A window in which `interrupts` came and `frames` were taken; returns the limit from now
    /// on.
    pub fn observe(&mut self, interrupts: u64, frames: u64, window: Duration) -> Moderation {
        let suggested = self.suggest(interrupts, frames, window);
        let is_more = suggested > self.load;
        if suggested < self.load || is_more && self.was_more {
            self.load = suggested;
        }
        self.was_more = is_more;
        self.load.limit()
    }

    /// Whether nothing is kept apart, nor is about to be.
    pub fn is_at_rest(&self) -> bool {
        self.load == Load::Latency && !self.was_more
    }

    fn suggest(self, interrupts: u64, frames: u64, window: Duration) -> Load {
        let seconds_of = |count: u64| u128::from(count) * u128::from(NANOS_PER_SECOND);
        let busy = u128::from(BUSY_PER_SECOND) * u128::from(window.as_nanos());
        let is_busy = seconds_of(interrupts) >= busy;
        match frames {
            _ if !is_busy && self.load == Load::Latency => Load::Latency,
            _ if frames < interrupts * MIXED_FRAMES || interrupts == 0 => Load::Latency,
            _ if frames < interrupts * BULK_FRAMES => Load::Mixed,
            _ => Load::Bulk,
        }
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
    use alloc::string::ToString;

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

    const WINDOW: Duration = Duration::from_millis(20);

    #[test]
    fn a_client_that_waits_for_each_answer_is_never_delayed() {
        let mut adaptive = Adaptive::default();
        for interrupts in [1, 100, 1000, 10_000] {
            for _ in 0..10 {
                let limit = adaptive.observe(interrupts, interrupts, WINDOW);
                assert_eq!(limit.spacing(), Duration::ZERO, "{interrupts}");
            }
        }
    }

    #[test]
    fn a_stream_is_kept_to_eight_thousand_interrupts_and_ends_without_a_trace() {
        let mut adaptive = Adaptive::default();
        // A million frames a second, sixteen at a time.
        for _ in 0..3 {
            adaptive.observe(62_500 / 50, 20_000, WINDOW);
        }
        assert_eq!(adaptive.observe(160, 20_000, WINDOW).per_second_max, 8000);
        // It stays so while they are kept apart.
        assert_eq!(adaptive.observe(160, 20_000, WINDOW).per_second_max, 8000);
        assert_eq!(adaptive.observe(160, 160, WINDOW).spacing(), Duration::ZERO);
    }

    #[test]
    fn a_burst_of_one_window_changes_nothing_and_less_load_does_at_once() {
        let mut adaptive = Adaptive::default();
        for _ in 0..5 {
            let limit = adaptive.observe(400, 8000, WINDOW);
            assert_eq!(limit.spacing(), Duration::ZERO);
            let limit = adaptive.observe(400, 400, WINDOW);
            assert_eq!(limit.spacing(), Duration::ZERO);
        }
        adaptive.observe(400, 8000, WINDOW);
        assert_eq!(adaptive.observe(400, 8000, WINDOW).per_second_max, 8000);
        assert_eq!(adaptive.observe(160, 800, WINDOW).per_second_max, 20_000);
        assert_eq!(adaptive.observe(0, 0, WINDOW).spacing(), Duration::ZERO);
    }

    #[test]
    fn few_interrupts_are_not_worth_to_be_fewer() {
        let mut adaptive = Adaptive::default();
        for _ in 0..10 {
            let limit = adaptive.observe(79, 79 * 64, WINDOW);
            assert_eq!(limit.spacing(), Duration::ZERO);
        }
    }

    #[test]
    fn what_an_administrator_says_is_in_range_and_shown_again() {
        for text in ["adaptive", "off", "123", "8000", "1000000"] {
            let said = Throttling::parse(text).map(|throttling| throttling.to_string());
            assert_eq!(said.as_deref(), Ok(text));
        }
        assert_eq!(Throttling::parse("122"), Err(PropError::OutOfRange));
        assert_eq!(Throttling::parse("0"), Err(PropError::OutOfRange));
        assert_eq!(Throttling::parse("1000001"), Err(PropError::OutOfRange));
        assert_eq!(Throttling::parse("fast"), Err(PropError::BadValue));
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
