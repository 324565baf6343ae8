//! Bandwidth limits: how they are written, and the bucket that enforces them.
//!
//! A token bucket is kept as one number, the time at which it will be full again (the
//! generic cell rate algorithm of ITU-T I.371), so that several CPUs share it with one
//! compare-and-swap and no lock. A frame passes if that time lies no further ahead than
//! the burst; it then moves ahead by the frame's own time on the wire. A frame larger
//! than the burst still passes, and those behind it wait longer: a limit never blocks a
//! link for good, and the average is exact.
//!
//! A limit of zero lets nothing pass.

use core::fmt;
use core::sync::atomic::{AtomicU64, Ordering};

use base::Instant;

/// The least limit but zero, in bits a second: one full frame in each clock tick of 10 ms.
pub const BPS_MIN: u64 = 1_200_000;
/// Time's worth of frames that may pass at once: a clock tick.
const BURST_NANOS: u64 = 10_000_000;
const NANOS_PER_SECOND: u64 = 1_000_000_000;

/// A limit in bits a second: zero or at least [`BPS_MIN`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Bandwidth(u64);

/// Why a limit is none.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BandwidthError {
    /// Not a number with K, M or G behind it.
    NotANumber,
    /// Below [`BPS_MIN`] and not zero.
    TooLow {
        /// What was asked for.
        bps: u64,
    },
}

impl Bandwidth {
    /// In bits a second.
    pub fn new(bps: u64) -> Result<Self, BandwidthError> {
        if bps != 0 && bps < BPS_MIN {
            return Err(BandwidthError::TooLow { bps });
        }
        Ok(Self(bps))
    }

    /// From a decimal number with `K`, `M` or `G` behind it; without one it is in Mb/s.
    pub fn parse(text: &str) -> Result<Self, BandwidthError> {
        let (number, unit) = match text.as_bytes().last() {
            Some(b'k' | b'K') => (&text[..text.len() - 1], 1_000),
            Some(b'm' | b'M') => (&text[..text.len() - 1], 1_000_000),
            Some(b'g' | b'G') => (&text[..text.len() - 1], 1_000_000_000),
            _ => (text, 1_000_000),
        };
        let bps = scaled(number, unit).ok_or(BandwidthError::NotANumber)?;
        Self::new(bps)
    }

    /// Bits a second.
    pub const fn bps(self) -> u64 {
        self.0
    }

    fn nanos_for(self, bytes: usize) -> u64 {
        let nanos = bytes as u128 * 8 * u128::from(NANOS_PER_SECOND) / u128::from(self.0.max(1));
        u64::try_from(nanos).unwrap_or(u64::MAX)
    }
}

/// `number` times `unit`, with up to nine decimals.
fn scaled(number: &str, unit: u64) -> Option<u64> {
    let (whole, part) = number.split_once('.').unwrap_or((number, ""));
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || !digits(whole) || !digits(part) || part.len() > 9 {
        return None;
    }
    let whole = whole.parse::<u64>().ok()?.checked_mul(unit)?;
    if part.is_empty() {
        return Some(whole);
    }
    let part = part.parse::<u64>().ok()?.checked_mul(unit)? / 10_u64.pow(part.len() as u32);
    whole.checked_add(part)
}

impl fmt::Display for Bandwidth {
    /// In Mb/s, with three decimals where they are not zero.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (mega, kilo) = (self.0 / 1_000_000, self.0 / 1_000 % 1_000);
        match kilo {
            0 => write!(f, "{mega}"),
            _ => write!(f, "{mega}.{kilo:03}"),
        }
    }
}

/// A bucket that all CPUs share.
#[derive(Debug)]
pub struct Limit {
    bandwidth: Bandwidth,
    /// When the bucket is full again, in nanoseconds since the start.
    full_at: AtomicU64,
}

impl Limit {
    /// A full bucket.
    pub const fn new(bandwidth: Bandwidth) -> Self {
        Self {
            bandwidth,
            full_at: AtomicU64::new(0),
        }
    }

    /// What it lets pass.
    pub const fn bandwidth(&self) -> Bandwidth {
        self.bandwidth
    }

    /// Takes tokens for a frame of `bytes`, or says when to come back:
    /// [`Instant::NEVER`] if the limit is zero.
    pub fn take(&self, now: Instant, bytes: usize) -> Result<(), Instant> {
        if self.bandwidth.0 == 0 {
            return Err(Instant::NEVER);
        }
        let cost = self.bandwidth.nanos_for(bytes);
        let now = now.as_nanos();
        let mut full_at = self.full_at.load(Ordering::Relaxed);
        loop {
            let ahead = full_at.saturating_sub(now);
            if ahead > BURST_NANOS {
                return Err(Instant::from_nanos(full_at - BURST_NANOS));
            }
            let next = full_at.max(now).saturating_add(cost);
            // Relaxed: the bucket guards no other memory.
            match self.full_at.compare_exchange_weak(
                full_at,
                next,
                Ordering::Relaxed,
                Ordering::Relaxed,
            ) {
                Ok(_) => return Ok(()),
                Err(other) => full_at = other,
            }
        }
    }

    /// Gives the tokens of a frame back that did not go after all.
    pub fn give_back(&self, bytes: usize) {
        let cost = self.bandwidth.nanos_for(bytes);
        self.full_at.fetch_sub(cost, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use base::Duration;

    use alloc::string::ToString;

    use super::*;

    fn bandwidth(text: &str) -> Bandwidth {
        Bandwidth::parse(text).expect("a limit")
    }

    #[test]
    fn a_number_without_a_unit_is_in_megabits() {
        assert_eq!(bandwidth("500").bps(), 500_000_000);
        assert_eq!(bandwidth("500M").to_string(), "500");
        assert_eq!(bandwidth("1.5G").to_string(), "1500");
        assert_eq!(bandwidth("1200K").to_string(), "1.200");
        assert_eq!(bandwidth("0").bps(), 0);
    }

    #[test]
    fn one_megabit_is_rejected_and_one_point_two_is_the_least() {
        assert_eq!(
            Bandwidth::parse("1M"),
            Err(BandwidthError::TooLow { bps: 1_000_000 })
        );
        assert_eq!(bandwidth("1.2M").bps(), BPS_MIN);
    }

    #[test]
    fn what_is_no_number_is_no_limit() {
        for text in [
            "",
            "M",
            "-1",
            "1e9",
            "ten",
            "1.2.3M",
            "1.M2",
            "99999999999999G",
            "ä",
        ] {
            assert_eq!(
                Bandwidth::parse(text),
                Err(BandwidthError::NotANumber),
                "{text}"
            );
        }
    }

    /// Bytes that pass in ten seconds when frames of `frame` bytes are always waiting.
    fn bytes_in_ten_seconds(limit: &Limit, frame: usize) -> u64 {
        let start = Instant::from_millis(7);
        let (mut now, mut bytes) = (start, 0);
        while now < start + Duration::from_secs(10) {
            match limit.take(now, frame) {
                Ok(()) => bytes += frame as u64,
                Err(later) => now = later,
            }
        }
        bytes
    }

    #[test]
    fn a_bulk_sender_stays_within_five_percent_of_100_megabits_over_ten_seconds() {
        for frame in [64, 1514, 65_549] {
            let limit = Limit::new(bandwidth("100M"));
            let bits = bytes_in_ten_seconds(&limit, frame) * 8;
            assert!((950_000_000..=1_050_000_000).contains(&bits), "{bits}");
        }
    }

    #[test]
    fn the_least_limit_still_lets_the_largest_frame_pass() {
        let limit = Limit::new(bandwidth("1.2M"));
        assert_eq!(limit.take(Instant::from_millis(1), 65_549), Ok(()));
        assert!(limit.take(Instant::from_millis(1), 64).is_err());
    }

    #[test]
    fn a_limit_of_zero_lets_nothing_pass_ever() {
        let limit = Limit::new(bandwidth("0"));
        assert_eq!(limit.take(Instant::START, 64), Err(Instant::NEVER));
    }

    #[test]
    fn tokens_given_back_can_be_taken_again() {
        let limit = Limit::new(bandwidth("10M"));
        let now = Instant::from_millis(5);
        while limit.take(now, 1500).is_ok() {}
        limit.give_back(1500);
        assert_eq!(limit.take(now, 1500), Ok(()));
    }
}
