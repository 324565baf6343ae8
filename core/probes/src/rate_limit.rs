//! How often something is said of what peers, programs or devices can make happen.

/// Says a few at once, then no more until so many nanoseconds after the first of them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RateLimit {
    burst: u32,
    window_ns: u64,
    began_ns: u64,
    said: u32,
    unsaid: u64,
}

impl RateLimit {
    /// `burst` each `window_ns` nanoseconds.
    pub const fn new(burst: u32, window_ns: u64) -> Self {
        Self {
            burst,
            window_ns,
            began_ns: 0,
            said: 0,
            unsaid: 0,
        }
    }

    /// Whether to say what happens at `now_ns`; then how many were not said since the last
    /// that was.
    pub fn say(&mut self, now_ns: u64) -> Option<u64> {
        if self.said == 0 || now_ns.saturating_sub(self.began_ns) >= self.window_ns {
            self.began_ns = now_ns;
            self.said = 0;
        }
        if self.said >= self.burst {
            self.unsaid += 1;
            return None;
        }
        self.said += 1;
        Some(core::mem::take(&mut self.unsaid))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_is_said_and_the_rest_is_counted_until_the_next_window() {
        let mut limit = RateLimit::new(2, 100);
        let said = [0, 1, 2, 50, 99, 100, 101, 102].map(|now| limit.say(now));
        let wanted = [Some(0), Some(0), None, None, None, Some(3), Some(0), None];
        assert_eq!(said, wanted);
        assert_eq!(limit.say(1000), Some(1));
    }

    #[test]
    fn a_clock_that_goes_back_silences_nothing_for_good() {
        let mut limit = RateLimit::new(1, 100);
        assert_eq!(limit.say(1000), Some(0));
        assert_eq!(limit.say(0), None);
        assert_eq!(limit.say(1100), Some(1));
    }
}
