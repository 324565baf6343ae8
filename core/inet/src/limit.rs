//! A token bucket: how often we do what strangers provoke.
//!
//! RFC 4443 2.4 (f) wants one for ICMPv6 errors; IPv4's are held to the same. A bucket
//! allows bursts (a traceroute) that a minimum interval would not.

use base::Instant;

/// Allows `per_second` events on average, `burst` at once.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TokenBucket {
    burst: u32,
    /// Between two tokens.
    interval_nanos: u64,
    tokens: u32,
    /// When the last token that was counted came in.
    filled: Instant,
}

impl TokenBucket {
    /// A full bucket. Neither argument is zero.
    pub const fn new(per_second: u32, burst: u32) -> Self {
        Self {
            burst,
            interval_nanos: 1_000_000_000 / per_second as u64,
            tokens: burst,
            filled: Instant::START,
        }
    }

    /// Takes a token; `false` if there is none.
    pub fn take(&mut self, now: Instant) -> bool {
        let elapsed = now.as_nanos().saturating_sub(self.filled.as_nanos());
        let fresh = elapsed / self.interval_nanos;
        if fresh >= u64::from(self.burst - self.tokens) {
            (self.tokens, self.filled) = (self.burst, now);
        } else {
            self.tokens += fresh as u32;
            let counted = self.filled.as_nanos() + fresh * self.interval_nanos;
            self.filled = Instant::from_nanos(counted);
        }
        let is_allowed = self.tokens > 0;
        self.tokens -= u32::from(is_allowed);
        is_allowed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_passes_and_then_the_average() {
        let mut bucket = TokenBucket::new(100, 5);
        let at = |millis: u64| Instant::from_millis(1000 + millis);
        let passed = |bucket: &mut TokenBucket, now| (0..20).filter(|_| bucket.take(now)).count();
        assert_eq!(passed(&mut bucket, at(0)), 5);
        assert_eq!(passed(&mut bucket, at(5)), 0);
        assert_eq!(passed(&mut bucket, at(10)), 1, "half intervals add up");
        assert_eq!(passed(&mut bucket, at(1000)), 5);
    }
}
