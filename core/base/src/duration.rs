//! A span of time.

use core::fmt;
use core::iter::Sum;
use core::ops::{Add, AddAssign, Div, Mul, Sub, SubAssign};

/// Nanoseconds in one word; 584 years fit.
///
/// `core::time::Duration` keeps seconds apart from nanoseconds, so that each sum of an
/// [`Instant`](crate::Instant) and a span costs a multiplication and each difference a division.
/// On a packet's way there are dozens of them. The names are those of the standard library;
/// all arithmetic saturates.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Duration(u64);

impl Duration {
    /// No time at all.
    pub const ZERO: Self = Self(0);
    /// The longest span.
    pub const MAX: Self = Self(u64::MAX);

    /// Seconds and nanoseconds, as a `timespec` has them.
    pub const fn new(secs: u64, nanos: u32) -> Self {
        Self(Self::from_secs(secs).0.saturating_add(nanos as u64))
    }

    /// So many nanoseconds.
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// So many microseconds.
    pub const fn from_micros(micros: u64) -> Self {
        Self(micros.saturating_mul(1_000))
    }

    /// So many milliseconds.
    pub const fn from_millis(millis: u64) -> Self {
        Self(millis.saturating_mul(1_000_000))
    }

    /// So many seconds.
    pub const fn from_secs(secs: u64) -> Self {
        Self(secs.saturating_mul(1_000_000_000))
    }

    /// In nanoseconds.
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// In whole microseconds.
    pub const fn as_micros(self) -> u64 {
        self.0 / 1_000
    }

    /// In whole milliseconds.
    pub const fn as_millis(self) -> u64 {
        self.0 / 1_000_000
    }

    /// In whole seconds.
    pub const fn as_secs(self) -> u64 {
        self.0 / 1_000_000_000
    }

    /// Nanoseconds beyond the last whole second.
    pub const fn subsec_nanos(self) -> u32 {
        (self.0 % 1_000_000_000) as u32
    }

    /// Microseconds beyond the last whole second.
    pub const fn subsec_micros(self) -> u32 {
        self.subsec_nanos() / 1_000
    }

    /// Whether it is no time at all.
    pub const fn is_zero(self) -> bool {
        self.0 == 0
    }
}

impl fmt::Debug for Duration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        core::time::Duration::from(*self).fmt(f)
    }
}

impl From<Duration> for core::time::Duration {
    fn from(span: Duration) -> Self {
        Self::from_nanos(span.0)
    }
}

impl From<core::time::Duration> for Duration {
    fn from(span: core::time::Duration) -> Self {
        Self(u64::try_from(span.as_nanos()).unwrap_or(u64::MAX))
    }
}

impl Add for Duration {
    type Output = Self;
    fn add(self, more: Self) -> Self {
        Self(self.0.saturating_add(more.0))
    }
}

impl AddAssign for Duration {
    fn add_assign(&mut self, more: Self) {
        *self = *self + more;
    }
}

impl Sub for Duration {
    type Output = Self;
    fn sub(self, less: Self) -> Self {
        Self(self.0.saturating_sub(less.0))
    }
}

impl SubAssign for Duration {
    fn sub_assign(&mut self, less: Self) {
        *self = *self - less;
    }
}

impl Mul<u32> for Duration {
    type Output = Self;
    fn mul(self, times: u32) -> Self {
        Self(self.0.saturating_mul(u64::from(times)))
    }
}

impl Mul<Duration> for u32 {
    type Output = Duration;
    fn mul(self, span: Duration) -> Duration {
        span * self
    }
}

impl Div<u32> for Duration {
    type Output = Self;
    fn div(self, parts: u32) -> Self {
        Self(self.0 / u64::from(parts))
    }
}

impl Sum for Duration {
    fn sum<I: Iterator<Item = Self>>(spans: I) -> Self {
        spans.fold(Self::ZERO, Add::add)
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use std::format;

    use super::*;

    #[test]
    fn spans_saturate_and_look_like_the_standard_ones() {
        let span = Duration::from_secs(1) + Duration::from_micros(1_500);
        assert_eq!(format!("{span:?}"), "1.0015s");
        assert_eq!((span.as_secs(), span.subsec_nanos()), (1, 1_500_000));
        assert_eq!(Duration::ZERO - span, Duration::ZERO);
        assert_eq!(Duration::MAX * 2, Duration::MAX);
        assert_eq!(Duration::from_secs(u64::MAX), Duration::MAX);
        assert_eq!([span, span].into_iter().sum::<Duration>(), 2 * span);
        assert_eq!(3 * span / 3, span);
        assert_eq!(Duration::from(core::time::Duration::MAX), Duration::MAX);
    }
}
