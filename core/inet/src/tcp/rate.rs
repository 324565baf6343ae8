//! Delivery-rate samples (draft-cheng-iccrg-delivery-rate-estimation-02).
//!
//! Each stretch remembers how much had been delivered when it left. When it arrives, what
//! was delivered meanwhile, over the longer of the times that sending and
//! acknowledging took, is a rate that the path has shown to carry. A sample of a sender that
//! had too little to send is only a lower bound and says so.

use base::{Duration, Instant};

use super::scoreboard::Sent;

/// What a stretch remembers of its departure.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Stamp {
    /// Bytes delivered before it left.
    pub delivered: u64,
    /// When the last of them arrived.
    delivered_at: Instant,
    /// When the first stretch of this sample left.
    first_sent_at: Instant,
    is_app_limited: bool,
}

/// What an acknowledgement shows of the path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RateSample {
    /// Bytes a second.
    pub rate: u64,
    /// Bytes delivered when the newest stretch of the sample left.
    pub prior_delivered: u64,
    /// The program and not the path set the rate.
    pub is_app_limited: bool,
}

/// The estimator of a connection.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Rate {
    delivered: u64,
    delivered_at: Instant,
    first_sent_at: Instant,
    /// Samples are limited by the program until so much is delivered.
    limited_until: u64,
    /// The last sample: bytes, and how long they took. Hardly anybody asks what rate that is, and a division takes long.
    latest: (u64, Duration),
}

impl Rate {
    /// Bytes delivered so far.
    pub fn delivered(&self) -> u64 {
        self.delivered
    }

    /// The last sample, in bytes a second.
    pub fn latest(&self) -> u64 {
        let (bytes, interval) = self.latest;
        rate_of(bytes, interval)
    }

    /// Something leaves, with nothing else in flight or not.
    #[inline]
    pub fn stamp(&mut self, now: Instant, is_first: bool) -> Stamp {
        if is_first {
            self.first_sent_at = now;
            self.delivered_at = now;
        }
        Stamp {
            delivered: self.delivered,
            delivered_at: self.delivered_at,
            first_sent_at: self.first_sent_at,
            is_app_limited: self.limited_until > 0,
        }
    }

    /// The program has nothing more to send, with `in_flight` bytes under way.
    #[inline]
    pub fn limit(&mut self, in_flight: u32) {
        self.limited_until = (self.delivered + u64::from(in_flight)).max(1);
    }

    /// Takes in that `bytes` have arrived, `newest` last of them to leave; `min_rtt` in
    /// microseconds.
    #[inline]
    pub fn sample(
        &mut self,
        bytes: u32,
        newest: Option<&Sent>,
        now: Instant,
        min_rtt: u32,
    ) -> Option<RateSample> {
        if bytes == 0 {
            return None;
        }
        self.delivered += u64::from(bytes);
        self.delivered_at = now;
        if self.limited_until > 0 && self.delivered > self.limited_until {
            self.limited_until = 0;
        }
        let newest = newest?;
        self.first_sent_at = newest.at;
        let stamp = newest.stamp;
        let sending = newest.at.since(stamp.first_sent_at);
        let interval = sending.max(now.since(stamp.delivered_at));
        // A shorter time than the path takes means that acknowledgements were bundled.
        if interval < Duration::from_micros(u64::from(min_rtt.max(1))) {
            return None;
        }
        let bytes = self.delivered - stamp.delivered;
        self.latest = (bytes, interval);
        Some(RateSample {
            rate: rate_of(bytes, interval),
            prior_delivered: stamp.delivered,
            is_app_limited: stamp.is_app_limited,
        })
    }
}

/// Bytes a second.
#[inline]
fn rate_of(bytes: u64, interval: Duration) -> u64 {
    let rate = bytes
        .saturating_mul(1_000_000_000)
        .checked_div(interval.as_nanos());
    rate.unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use wire::Seq;

    use super::*;

    #[test]
    fn a_rate_is_what_arrived_over_the_time_it_took() {
        let ms = Instant::from_millis;
        let mut rate = Rate::default();
        let first = Sent::new(Seq(0), Seq(1000), ms(0), rate.stamp(ms(0), true));
        let second = Sent::new(Seq(1000), Seq(3000), ms(5), rate.stamp(ms(5), false));
        let sample = rate.sample(1000, Some(&first), ms(20), 20_000);
        let sample = sample.expect("a sample");
        assert_eq!((sample.rate, sample.prior_delivered), (50_000, 0));
        let sample = rate.sample(2000, Some(&second), ms(25), 20_000);
        let sample = sample.expect("a sample");
        assert_eq!(sample.rate, 120_000, "3000 bytes in 25 ms");
        assert!(!sample.is_app_limited);
    }

    #[test]
    fn a_sender_without_bytes_marks_its_samples() {
        let ms = Instant::from_millis;
        let mut rate = Rate::default();
        rate.limit(1000);
        let sent = Sent::new(Seq(0), Seq(1000), ms(0), rate.stamp(ms(0), true));
        let sample = rate.sample(1000, Some(&sent), ms(10), 0);
        assert!(sample.is_some_and(|sample| sample.is_app_limited));
    }
}
