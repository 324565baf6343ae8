//! How long to wait for an answer (RFC 6298), in microseconds.

use base::{Duration, Instant};
use wire::Seq;

const INITIAL_MICROS: u32 = 1_000_000;
/// Linux's floor; RFC 6298 asks for a second, which no data centre wants.
const MIN_MICROS: u32 = 200_000;
/// RFC 6298 (2.5): at least a minute.
const MAX_MICROS: u32 = 120_000_000;
const BACKOFF_MAX: u32 = 10;

/// The estimator, and the one segment that it times.
#[derive(Clone, Copy)]
pub(super) struct Rtt {
    /// Zero until the first measurement.
    smoothed: u32,
    variation: u32,
    rto: u32,
    /// End and departure of the timed segment.
    probe: Option<(Seq, Instant)>,
}

impl Default for Rtt {
    fn default() -> Self {
        Self {
            smoothed: 0,
            variation: 0,
            rto: INITIAL_MICROS,
            probe: None,
        }
    }
}

impl Rtt {
    pub fn smoothed(&self) -> Duration {
        Duration::from_micros(u64::from(self.smoothed))
    }

    pub fn variation(&self) -> Duration {
        Duration::from_micros(u64::from(self.variation))
    }

    pub fn timeout(&self) -> Duration {
        Duration::from_micros(u64::from(self.rto))
    }

    /// The timeout after `times` timeouts in a row.
    pub fn backed_off(&self, times: u8) -> Duration {
        let micros = u64::from(self.rto) << u32::from(times).min(BACKOFF_MAX);
        Duration::from_micros(micros.min(u64::from(MAX_MICROS)))
    }

    /// Times the segment that ends at `end`, unless another is being timed.
    #[inline]
    pub fn start(&mut self, end: Seq, now: Instant) {
        if self.probe.is_none() {
            self.probe = Some((end, now));
        }
    }

    /// Karn's rule: after a retransmission nobody knows which copy is acknowledged.
    pub fn cancel(&mut self) {
        self.probe = None;
    }

    /// Everything before `ack` has arrived.
    #[inline]
    pub fn acknowledge(&mut self, ack: Seq, now: Instant) {
        if let Some((end, departed)) = self.probe
            && !end.after(ack)
        {
            self.probe = None;
            self.sample(now.since(departed));
        }
    }

    /// A measurement; RFC 6298 (2.2) and (2.3).
    pub fn sample(&mut self, rtt: Duration) {
        let rtt = u32::try_from(rtt.as_micros())
            .unwrap_or(MAX_MICROS)
            .clamp(1, MAX_MICROS);
        if self.smoothed == 0 {
            self.smoothed = rtt;
            self.variation = rtt / 2;
        } else {
            let error = self.smoothed.abs_diff(rtt);
            self.variation = self.variation - self.variation / 4 + error / 4;
            self.smoothed = (self.smoothed - self.smoothed / 8 + rtt / 8).max(1);
        }
        let spread = (4 * self.variation).max(MIN_MICROS);
        self.rto = self
            .smoothed
            .saturating_add(spread)
            .clamp(MIN_MICROS, MAX_MICROS);
    }
}
