//! How much faster than nominal a clock runs.

/// A small difference in speed, in parts per trillion (10^12): finer than any counter's
/// multiplier can show.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub struct Speed(i64);

const WHOLE: i128 = 1_000_000_000_000;

impl Speed {
    /// As nominal.
    pub const NOMINAL: Self = Self(0);

    /// From parts per million.
    pub const fn from_ppm(ppm: i64) -> Self {
        Self(ppm * 1_000_000)
    }

    /// From nanoseconds gained per second, as a fraction of 2^32.
    pub const fn from_scaled_ns(scaled: i64) -> Self {
        Self(((scaled as i128 * 1000) >> 32) as i64)
    }

    /// What gains `gain_ns` in `span_ns`, but not more than `limit` either way.
    pub fn gaining(gain_ns: i64, span_ns: u64, limit: Self) -> Self {
        let exact = i128::from(gain_ns) * WHOLE / i128::from(span_ns.max(1));
        let limit = i128::from(limit.0);
        Self(exact.clamp(-limit, limit) as i64)
    }

    /// What it gains in `span_ns`, in nanoseconds.
    pub fn gained_in(self, span_ns: u64) -> i64 {
        (i128::from(span_ns) * i128::from(self.0) / WHOLE) as i64
    }

    /// Parts per trillion.
    pub const fn parts_per_trillion(self) -> i64 {
        self.0
    }

    /// Both together.
    pub const fn plus(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }

    /// `value` made larger by this.
    pub fn applied_to(self, value: u64) -> u64 {
        let more = i128::from(value) * i128::from(self.0) / WHOLE;
        u64::try_from(i128::from(value) + more).unwrap_or(0)
    }
}
