//! A point on the machine's monotonic clock.

use core::ops::{Add, AddAssign, Sub};

use crate::Duration;

/// Nanoseconds since the machine started; 584 years fit.
///
/// Nobody below the kernel reads a clock: instants arrive as arguments, so that a
/// simulation can replay a run exactly.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Instant(u64);

impl Instant {
    /// The moment the machine started.
    pub const START: Self = Self(0);
    /// Later than anything; a deadline that never comes.
    pub const NEVER: Self = Self(u64::MAX);

    /// From nanoseconds since the start.
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// From milliseconds since the start.
    pub const fn from_millis(millis: u64) -> Self {
        Self(millis * 1_000_000)
    }

    /// Nanoseconds since the start.
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// Whole microseconds since the start.
    pub const fn as_micros(self) -> u64 {
        self.0 / 1_000
    }

    /// Whole milliseconds since the start.
    pub const fn as_millis(self) -> u64 {
        self.0 / 1_000_000
    }

    /// Time since `earlier`, zero if that lies in the future.
    pub const fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}

impl Add<Duration> for Instant {
    type Output = Self;
    /// Saturates at [`Instant::NEVER`].
    fn add(self, span: Duration) -> Self {
        Self(self.0.saturating_add(span.as_nanos()))
    }
}

impl AddAssign<Duration> for Instant {
    fn add_assign(&mut self, span: Duration) {
        *self = *self + span;
    }
}

impl Sub<Duration> for Instant {
    type Output = Self;
    /// Saturates at [`Instant::START`].
    fn sub(self, span: Duration) -> Self {
        Self(self.0.saturating_sub(span.as_nanos()))
    }
}

impl Sub for Instant {
    type Output = Duration;
    fn sub(self, earlier: Self) -> Duration {
        self.since(earlier)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_deadline_past_the_end_of_time_is_never() {
        assert_eq!(Instant::from_millis(1) + Duration::MAX, Instant::NEVER);
        assert_eq!(Instant::START.since(Instant::NEVER), Duration::ZERO);
    }
}
