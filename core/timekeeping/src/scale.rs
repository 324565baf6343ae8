//! A line from ticks to nanoseconds.

use crate::{SECOND_NS, Speed};

/// A line from a counter's ticks to a clock's nanoseconds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Scale {
    /// A value of the counter.
    pub base_ticks: u64,
    /// What the clock shows there.
    pub base_ns: u64,
    /// Nanoseconds per tick, as a fraction of 2^32.
    pub multiplier: u64,
}

/// A line is anchored so far before the point through which it was bent: a CPU whose counter
/// is behind the others' by a little still finds itself after the anchor.
const MARGIN_TICKS: u64 = 1 << 20;

impl Scale {
    /// Zero at `base_ticks`.
    pub fn starting(base_ticks: u64, hertz: u64) -> Self {
        Self {
            base_ticks,
            base_ns: 0,
            multiplier: multiplier(hertz),
        }
    }

    /// What the clock shows.
    pub fn at(&self, ticks: u64) -> u64 {
        self.base_ns
            .wrapping_add(self.span_ns(ticks.wrapping_sub(self.base_ticks)))
    }

    /// How long so many ticks last.
    pub fn span_ns(&self, ticks: u64) -> u64 {
        ((u128::from(ticks) * u128::from(self.multiplier)) >> 32) as u64
    }

    /// The line that goes on at `ticks` where this one is, with another slope.
    pub fn bent(&self, ticks: u64, multiplier: u64) -> Self {
        let ns = self.at(ticks);
        let mut bent = Self {
            base_ticks: ticks,
            base_ns: ns,
            multiplier,
        };
        let margin_ns = bent.span_ns(MARGIN_TICKS);
        if let Some(base_ns) = ns.checked_sub(margin_ns) {
            bent.base_ticks = ticks.wrapping_sub(MARGIN_TICKS);
            bent.base_ns = base_ns;
        }
        bent
    }
}

/// Nanoseconds per tick of a counter, as a fraction of 2^32.
pub(crate) fn multiplier(hertz: u64) -> u64 {
    ((u128::from(SECOND_NS) << 32) / u128::from(hertz.max(1))) as u64
}

/// The slope of a counter of this speed for a clock that runs faster by `speed`.
impl Scale {
    /// Nanoseconds per tick (2^-32) of a counter at `hertz` for a clock faster by `speed`.
    pub fn slope(hertz: u64, speed: Speed) -> u64 {
        speed.applied_to(multiplier(hertz)).max(1)
    }
}
