//! When the next segment may leave, for ways to control congestion that set a rate.
//!
//! The timers tick in milliseconds, so what a late tick has missed may leave at once: the
//! schedule lags behind the clock by at most a tick. What leaves in one go takes a tick
//! at the rate, and at least two segments.

use base::{Duration, Instant};

use super::tcb::Tcb;

/// The wheel's tick.
const TICK: Duration = Duration::from_millis(1);

/// However slow the path seems, a second is enough between two bursts.
const WAIT_MAX_NANOS: u64 = 1_000_000_000;

impl Tcb {
    /// Whether nothing may leave yet; sees to it that waiting ends.
    #[inline]
    pub(super) fn is_paced_out(&mut self, now: Instant) -> bool {
        let is_early = self.congestion.pacing_rate().is_some() && self.pace_at > now;
        self.timers.pace = if is_early {
            self.pace_at
        } else {
            Instant::NEVER
        };
        is_early
    }

    /// So many bytes leave.
    #[inline]
    pub(super) fn pace(&mut self, now: Instant, bytes: u32) {
        let Some(rate) = self.congestion.pacing_rate() else {
            return;
        };
        let nanos = (u64::from(bytes) * 1_000_000_000 / rate.max(1)).min(WAIT_MAX_NANOS);
        let earliest = now.max(Instant::START + TICK) - TICK;
        self.pace_at = self.pace_at.max(earliest) + Duration::from_nanos(nanos);
    }

    /// Bytes that may leave in one go.
    #[inline]
    pub(super) fn pacing_quantum(&self) -> u32 {
        let least = 2 * u32::from(self.sender.mss);
        match self.congestion.pacing_rate() {
            Some(rate) => u32::try_from(rate / 1000).unwrap_or(u32::MAX).max(least),
            None => u32::MAX,
        }
    }
}
