//! When the first slow start ends (HyStart++, RFC 9406).
//!
//! Slow start alone ends in a loss of half of its last flight. A round whose shortest round
//! trip is an eighth longer than that of the round before says that a queue is building
//! up: growth slows to a quarter for five rounds, and then ends, unless round trips
//! become short again.

use wire::Seq;

use super::Ack;

const THRESHOLD_MIN_MICROS: u32 = 4_000;
const THRESHOLD_MAX_MICROS: u32 = 16_000;
const DIVISOR: u32 = 8;
const SAMPLES: u8 = 8;
const CONSERVATIVE_DIVISOR: u32 = 4;
const CONSERVATIVE_ROUNDS: u8 = 5;
/// Segments that one acknowledgement adds at most, since nothing is paced.
const SEGMENTS_MAX: u32 = 8;
/// No round trip was measured.
const NONE: u32 = u32::MAX;

/// The state of slow start.
#[derive(Clone, Copy, Debug)]
pub(super) struct HyStart {
    /// The round ends when this is acknowledged; `None` before the first.
    round_end: Option<Seq>,
    /// Shortest round trips of this round and the last, in microseconds.
    shortest: u32,
    shortest_before: u32,
    samples: u8,
    /// In conservative slow start: the round trip that began it, and its rounds.
    baseline: Option<u32>,
    rounds: u8,
}

impl Default for HyStart {
    fn default() -> Self {
        Self {
            round_end: None,
            shortest: NONE,
            shortest_before: NONE,
            samples: 0,
            baseline: None,
            rounds: 0,
        }
    }
}

impl HyStart {
    /// Bytes that an acknowledgement adds to the window.
    pub fn growth(&mut self, ack: &Ack, mss: u32) -> u32 {
        if self.round_end.is_none_or(|end| !ack.una.before(end)) {
            self.begin_round(ack.nxt);
        }
        if let Some(rtt) = ack.rtt {
            let micros = u32::try_from(rtt.as_micros()).unwrap_or(NONE);
            self.shortest = self.shortest.min(micros);
            self.samples = self.samples.saturating_add(1);
            self.judge();
        }
        let growth = ack.acked.min(SEGMENTS_MAX * mss);
        match self.baseline {
            Some(_) => growth / CONSERVATIVE_DIVISOR,
            None => growth,
        }
    }

    fn begin_round(&mut self, end: Seq) {
        self.round_end = Some(end);
        self.shortest_before = self.shortest;
        self.shortest = NONE;
        self.samples = 0;
        if self.baseline.is_some() {
            self.rounds += 1;
        }
    }

    fn judge(&mut self) {
        let is_known = self.shortest != NONE && self.shortest_before != NONE;
        if self.samples < SAMPLES || !is_known {
            return;
        }
        match self.baseline {
            None => {
                let threshold = (self.shortest_before / DIVISOR)
                    .clamp(THRESHOLD_MIN_MICROS, THRESHOLD_MAX_MICROS);
                if self.shortest >= self.shortest_before.saturating_add(threshold) {
                    self.baseline = Some(self.shortest);
                    self.rounds = 0;
                }
            }
            Some(baseline) if self.shortest < baseline => self.baseline = None,
            Some(_) => {}
        }
    }

    /// Whether congestion avoidance begins.
    pub fn is_over(&self) -> bool {
        self.baseline.is_some() && self.rounds >= CONSERVATIVE_ROUNDS
    }
}

#[cfg(test)]
mod tests {
    use base::{Duration, Instant};

    use super::super::tests::ack;
    use super::*;

    /// A round of ten acknowledgements; returns what the last of them adds.
    fn round(hystart: &mut HyStart, number: u32, millis: u64) -> u32 {
        let mut growth = 0;
        for _ in 0..10 {
            let ack = Ack {
                una: Seq(number * 10),
                nxt: Seq(number * 10 + 10),
                rtt: Some(Duration::from_millis(millis)),
                ..ack(Instant::START, 1000)
            };
            growth = hystart.growth(&ack, 1000);
        }
        growth
    }

    #[test]
    fn a_growing_delay_slows_growth_and_then_ends_it() {
        // RFC 9406 section 4.2.
        let mut hystart = HyStart::default();
        assert_eq!(round(&mut hystart, 1, 40), 1000);
        assert_eq!(round(&mut hystart, 2, 44), 1000, "less than an eighth");
        assert_eq!(round(&mut hystart, 3, 50), 250);
        for number in 4..8 {
            round(&mut hystart, number, 51);
        }
        assert!(!hystart.is_over());
        round(&mut hystart, 8, 51);
        assert!(hystart.is_over());
    }

    #[test]
    fn a_delay_that_passes_was_no_queue() {
        let mut hystart = HyStart::default();
        round(&mut hystart, 1, 40);
        assert_eq!(round(&mut hystart, 2, 60), 250);
        assert_eq!(round(&mut hystart, 3, 40), 1000);
    }
}
