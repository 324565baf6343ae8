//! How long to wait for an answer (RFC 6298), in microseconds.

use base::{Duration, Instant};

const INITIAL_MICROS: u32 = 1_000_000;
/// Linux's floor; RFC 6298 asks for a second, which no data centre wants.
const MIN_MICROS: u32 = 200_000;
/// RFC 6298 (2.5): at least a minute.
const MAX_MICROS: u32 = 120_000_000;
const BACKOFF_MAX: u32 = 10;
/// How long the shortest time counts: paths change.
const MIN_LIFETIME: Duration = Duration::from_secs(10);

/// The estimator. It times the SYN itself; `scoreboard` times all that follows.
#[derive(Clone, Copy)]
pub(super) struct Rtt {
    /// Zero until the first measurement.
    smoothed: u32,
    variation: u32,
    rto: u32,
    /// The shortest time of late, and when it was found; zero until the first measurement.
    shortest: u32,
    shortest_at: Instant,
    /// The answer to our SYN tells how long it took.
    is_timing: bool,
}

impl Default for Rtt {
    fn default() -> Self {
        Self {
            smoothed: 0,
            variation: 0,
            rto: INITIAL_MICROS,
            shortest: 0,
            shortest_at: Instant::START,
            is_timing: false,
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

    /// The shortest time of the last seconds in microseconds; zero if there was none.
    #[inline]
    pub fn shortest(&self) -> u32 {
        self.shortest
    }

    /// Whether anything was measured yet.
    pub fn is_known(&self) -> bool {
        self.smoothed > 0
    }

    /// The timeout after `times` timeouts in a row.
    pub fn backed_off(&self, times: u8) -> Duration {
        let micros = u64::from(self.rto) << u32::from(times).min(BACKOFF_MAX);
        Duration::from_micros(micros.min(u64::from(MAX_MICROS)))
    }

    /// Our SYN leaves for the first time.
    pub fn start(&mut self) {
        self.is_timing = true;
    }

    /// Karn's rule: after a retransmission nobody knows which copy is acknowledged.
    pub fn cancel(&mut self) {
        self.is_timing = false;
    }

    /// The SYN that left at `departed` is acknowledged.
    pub fn finish(&mut self, departed: Instant, now: Instant) {
        if core::mem::take(&mut self.is_timing) {
            self.sample(now.since(departed), now);
        }
    }

    /// Goes on with what another stack has measured, in microseconds.
    pub fn restore(&mut self, smoothed: u32, variation: u32) {
        if smoothed == 0 {
            return;
        }
        self.smoothed = smoothed.min(MAX_MICROS);
        self.variation = variation.min(MAX_MICROS);
        self.set_timeout();
    }

    /// A measurement; RFC 6298 (2.2) and (2.3).
    #[inline]
    pub fn sample(&mut self, rtt: Duration, now: Instant) {
        let rtt = u32::try_from(rtt.as_micros())
            .unwrap_or(MAX_MICROS)
            .clamp(1, MAX_MICROS);
        let is_stale = now.since(self.shortest_at) > MIN_LIFETIME;
        if self.shortest == 0 || rtt <= self.shortest || is_stale {
            self.shortest = rtt;
            self.shortest_at = now;
        }
        if self.smoothed == 0 {
            self.smoothed = rtt;
            self.variation = rtt / 2;
        } else {
            let error = self.smoothed.abs_diff(rtt);
            self.variation = self.variation - self.variation / 4 + error / 4;
            self.smoothed = (self.smoothed - self.smoothed / 8 + rtt / 8).max(1);
        }
        self.set_timeout();
    }

    /// RFC 6298 (2.3) and (2.4).
    #[inline]
    fn set_timeout(&mut self) {
        let spread = (4 * self.variation).max(MIN_MICROS);
        self.rto = self
            .smoothed
            .saturating_add(spread)
            .clamp(MIN_MICROS, MAX_MICROS);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sampled(millis: &[u64]) -> Rtt {
        let mut rtt = Rtt::default();
        for (index, sample) in millis.iter().enumerate() {
            let now = Instant::from_millis(1000 * index as u64);
            rtt.sample(Duration::from_millis(*sample), now);
        }
        rtt
    }

    #[test]
    fn the_first_sample_sets_the_timeout_to_three_times_itself() {
        // RFC 6298 (2.2): SRTT + 4 * RTT / 2.
        assert_eq!(sampled(&[100]).timeout(), Duration::from_millis(300));
        assert_eq!(sampled(&[]).timeout(), Duration::from_secs(1));
    }

    #[test]
    fn the_timeout_doubles_up_to_its_limit() {
        // RFC 6298 (5.5) and (2.5).
        let rtt = sampled(&[100]);
        assert_eq!(rtt.backed_off(3), Duration::from_millis(2400));
        assert_eq!(rtt.backed_off(100), Duration::from_secs(120));
    }

    #[test]
    fn the_shortest_time_is_forgotten_when_the_path_has_changed() {
        let mut samples = alloc::vec![20];
        samples.resize(9, 50);
        assert_eq!(sampled(&samples).shortest(), 20_000);
        samples.resize(13, 50);
        assert_eq!(sampled(&samples).shortest(), 50_000);
    }
}
