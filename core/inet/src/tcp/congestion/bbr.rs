//! A model of the path: the rate that its bottleneck has shown, and its shortest round trip
//! (draft-cardwell-iccrg-bbr-congestion-control-00, "BBR").
//!
//! Segments leave at the rate, and what is in flight stays below twice the product of both,
//! so that neither random loss nor a long queue governs the flow. *Startup* doubles the
//! rate until three rounds bring no quarter more; *drain* empties the queue that this has
//! built; *probing* tries a quarter more, then a quarter less, then cruises for six
//! round trips; every ten seconds without a new shortest round trip, four segments are
//! in flight for 200 ms to measure it.
//!
//! Rates are in bytes a second, gains in 256ths.

use base::{Duration, Instant};

use super::{Ack, INITIAL_SEGMENTS, WINDOW_MAX, Window};

const UNIT: u64 = 256;
/// 2 / ln 2: the least gain that doubles the rate each round.
const HIGH_GAIN: u64 = 739;
const DRAIN_GAIN: u64 = UNIT * UNIT / HIGH_GAIN;
const WINDOW_GAIN: u64 = 2 * UNIT;
const CYCLE: [u64; 8] = [320, 192, 256, 256, 256, 256, 256, 256];
/// Rounds for which a rate counts.
const RATE_ROUNDS: usize = 10;
/// A quarter more is growth; three rounds without it are a full pipe.
const GROWTH_GAIN: u64 = 320;
const FULL_ROUNDS: u8 = 3;
const SHORTEST_LIFETIME: Duration = Duration::from_secs(10);
const PROBE_TIME: Duration = Duration::from_millis(200);
const WINDOW_SEGMENTS_MIN: u32 = 4;
/// A sixteenth of a flight may be lost by chance.
const TOLERATED_LOSS: u32 = 16;
/// Until something is known, a round trip is taken for this.
const FIRST_ROUND_TRIP: Duration = Duration::from_millis(1);

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Mode {
    Startup,
    Drain,
    /// Phase of the cycle.
    Probe(u8),
    /// Measuring the shortest round trip; until when, once little enough is in flight.
    Short(Option<Instant>),
}

/// The model.
#[derive(Clone, Debug)]
pub(super) struct Bbr {
    mode: Mode,
    /// The best rate of each of the last rounds.
    rates: [u64; RATE_ROUNDS],
    round: usize,
    /// The round ends when something that leaves after so much was delivered arrives.
    round_end: u64,
    shortest: Option<Duration>,
    shortest_at: Instant,
    full_rate: u64,
    full_rounds: u8,
    is_full: bool,
    cycle_at: Instant,
    /// The window before a loss or a measurement, to return to.
    prior: u32,
    /// Until the end of this round, only what was delivered leaves.
    conserve_until: Option<u64>,
    pacing_rate: u64,
    entropy: u32,
}

impl Bbr {
    pub fn new(entropy: u32) -> Self {
        Self {
            mode: Mode::Startup,
            rates: [0; RATE_ROUNDS],
            round: 0,
            round_end: 0,
            shortest: None,
            shortest_at: Instant::START,
            full_rate: 0,
            full_rounds: 0,
            is_full: false,
            cycle_at: Instant::START,
            prior: 0,
            conserve_until: None,
            pacing_rate: u64::MAX,
            entropy,
        }
    }

    fn rate(&self) -> u64 {
        self.rates.into_iter().max().unwrap_or(0)
    }

    pub fn pacing_rate(&self) -> u64 {
        self.pacing_rate
    }

    fn pacing_gain(&self) -> u64 {
        match self.mode {
            Mode::Startup => HIGH_GAIN,
            Mode::Drain => DRAIN_GAIN,
            Mode::Probe(phase) => CYCLE[usize::from(phase) % CYCLE.len()],
            Mode::Short(_) => UNIT,
        }
    }

    /// `gain` times what the path holds, in bytes; what a connection begins with before
    /// anything is known.
    fn product(&self, gain: u64, mss: u32) -> u32 {
        let Some(shortest) = self.shortest.filter(|_| self.rate() > 0) else {
            return INITIAL_SEGMENTS * mss;
        };
        let bytes = u128::from(self.rate()) * u128::from(shortest.as_nanos()) / 1_000_000_000;
        let bytes = bytes.min(u128::from(WINDOW_MAX)) as u64 * gain / UNIT;
        // Room for what is under way between the hosts' stacks and their devices.
        bytes.min(u64::from(WINDOW_MAX)) as u32 + 3 * mss
    }

    pub fn on_ack(&mut self, window: &mut Window, ack: &Ack) {
        let is_round = self.note_rate(ack);
        self.advance_cycle(window, ack);
        if is_round {
            self.judge_pipe(ack);
        }
        self.leave_startup(window, ack);
        self.note_shortest(window, ack);
        self.set_pacing(window, ack);
        self.set_window(window, ack);
    }

    /// Takes in a rate sample; returns whether a round has ended.
    fn note_rate(&mut self, ack: &Ack) -> bool {
        let Some(sample) = ack.sample else {
            return false;
        };
        let is_round = sample.prior_delivered >= self.round_end;
        if is_round {
            self.round_end = ack.delivered;
            self.round = (self.round + 1) % RATE_ROUNDS;
            // A program that sends little must not make us forget what the path can do.
            self.rates[self.round] = if sample.is_app_limited {
                self.rate()
            } else {
                0
            };
        }
        if !sample.is_app_limited || sample.rate >= self.rate() {
            let best = &mut self.rates[self.round];
            *best = sample.rate.max(*best);
        }
        is_round
    }

    fn advance_cycle(&mut self, window: &Window, ack: &Ack) {
        let Mode::Probe(phase) = self.mode else {
            return;
        };
        let shortest = self.shortest.unwrap_or(FIRST_ROUND_TRIP);
        let is_long = ack.now.since(self.cycle_at) > shortest;
        let gain = self.pacing_gain();
        let is_over = if gain > UNIT {
            is_long && (ack.is_recovering || ack.in_flight >= self.product(gain, window.mss))
        } else if gain < UNIT {
            is_long || ack.in_flight <= self.product(UNIT, window.mss)
        } else {
            is_long
        };
        if is_over {
            self.cycle_at = ack.now;
            self.mode = Mode::Probe((phase + 1) % CYCLE.len() as u8);
        }
    }

    /// Whether startup has found the path's rate.
    fn judge_pipe(&mut self, ack: &Ack) {
        if self.is_full || ack.sample.is_some_and(|sample| sample.is_app_limited) {
            return;
        }
        if self.rate() * UNIT >= self.full_rate * GROWTH_GAIN {
            self.full_rate = self.rate();
            self.full_rounds = 0;
            return;
        }
        self.full_rounds += 1;
        self.is_full = self.full_rounds >= FULL_ROUNDS;
    }

    fn leave_startup(&mut self, window: &Window, ack: &Ack) {
        if self.mode == Mode::Startup && self.is_full {
            self.mode = Mode::Drain;
        }
        if self.mode == Mode::Drain && ack.in_flight <= self.product(UNIT, window.mss) {
            self.begin_probing(ack.now);
        }
    }

    fn begin_probing(&mut self, now: Instant) {
        // Any phase but the one that drains, so that flows do not probe in step.
        let phase = (self.entropy ^ now.as_micros() as u32) % (CYCLE.len() as u32 - 1);
        self.mode = Mode::Probe(if phase == 0 { 0 } else { phase as u8 + 1 });
        self.cycle_at = now;
    }

    fn note_shortest(&mut self, window: &mut Window, ack: &Ack) {
        let is_old = ack.now.since(self.shortest_at) > SHORTEST_LIFETIME;
        if let Some(rtt) = ack.rtt
            && (is_old || self.shortest.is_none_or(|shortest| rtt <= shortest))
        {
            self.shortest = Some(rtt);
            self.shortest_at = ack.now;
        }
        match self.mode {
            Mode::Short(None) if ack.in_flight <= WINDOW_SEGMENTS_MIN * window.mss => {
                self.mode = Mode::Short(Some(ack.now + PROBE_TIME));
            }
            Mode::Short(Some(until)) if until <= ack.now => {
                self.shortest_at = ack.now;
                window.bytes = window.bytes.max(self.prior);
                if self.is_full {
                    self.begin_probing(ack.now);
                } else {
                    self.mode = Mode::Startup;
                }
            }
            Mode::Short(_) => {}
            _ if is_old && self.shortest.is_some() => {
                self.remember(window);
                self.mode = Mode::Short(None);
            }
            _ => {}
        }
    }

    fn set_pacing(&mut self, window: &Window, ack: &Ack) {
        let rate = self.rate();
        let (base, gain) = if rate == 0 {
            let trip = ack.smoothed.max(FIRST_ROUND_TRIP).as_micros();
            (u64::from(window.bytes) * 1_000_000 / trip, HIGH_GAIN)
        } else {
            (rate, self.pacing_gain())
        };
        let wanted = base.saturating_mul(gain) / UNIT;
        // In startup a slower sample is no reason to slow down.
        if self.is_full || wanted > self.pacing_rate || self.pacing_rate == u64::MAX {
            self.pacing_rate = wanted.max(u64::from(window.mss));
        }
    }

    fn set_window(&mut self, window: &mut Window, ack: &Ack) {
        let least = WINDOW_SEGMENTS_MIN * window.mss;
        if matches!(self.mode, Mode::Short(_)) {
            window.bytes = window.bytes.min(least);
            return;
        }
        if let Some(until) = self.conserve_until {
            let has_arrived = ack
                .sample
                .is_some_and(|sample| sample.prior_delivered >= until);
            if !has_arrived {
                let conserved = ack.in_flight + ack.delivered_bytes.max(window.mss);
                window.bytes = window.bytes.max(conserved);
                return;
            }
            self.conserve_until = None;
        }
        let gain = if self.is_full { WINDOW_GAIN } else { HIGH_GAIN };
        let target = self.product(gain, window.mss);
        if self.is_full {
            window.bytes = (window.bytes.saturating_add(ack.delivered_bytes)).min(target);
        } else if window.bytes < target || ack.delivered < u64::from(INITIAL_SEGMENTS * window.mss)
        {
            window.add(ack.delivered_bytes);
        }
        window.bytes = window.bytes.max(least);
    }

    fn remember(&mut self, window: &Window) {
        let is_reduced = self.conserve_until.is_some() || matches!(self.mode, Mode::Short(_));
        self.prior = if is_reduced {
            self.prior.max(window.bytes)
        } else {
            window.bytes
        };
    }

    /// Of `in_flight` bytes so many are lost. If that is more than chance may do, only what
    /// arrives is replaced until the round ends.
    pub fn on_loss(&mut self, window: &mut Window, in_flight: u32, lost: u32) {
        self.remember(window);
        if lost <= window.mss.max(in_flight / TOLERATED_LOSS) {
            return;
        }
        self.conserve_until = Some(self.round_end);
        let left = in_flight.saturating_sub(lost) + window.mss;
        window.bytes = left.min(window.bytes).max(window.mss);
    }

    pub fn on_recovered(&mut self, window: &mut Window) {
        self.conserve_until = None;
        window.bytes = window.bytes.max(self.prior);
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::rate::RateSample;
    use super::super::tests::ack;
    use super::*;

    const RATE: u64 = 1_000_000;

    /// Round trips of 20 ms over a path of 1 MB/s, one acknowledgement each.
    fn run(bbr: &mut Bbr, window: &mut Window, trips: u64, rate: impl Fn(u64) -> u64) {
        for trip in 0..trips {
            let delivered = 20_000 * (trip + 1);
            let sample = RateSample {
                rate: rate(trip),
                prior_delivered: 20_000 * trip,
                is_app_limited: false,
            };
            let ack = Ack {
                rtt: Some(Duration::from_millis(20)),
                delivered,
                in_flight: 20_000,
                sample: Some(sample),
                ..ack(Instant::from_millis(1000 + 20 * trip), 20_000)
            };
            bbr.on_ack(window, &ack);
        }
    }

    fn fresh() -> (Bbr, Window) {
        let window = Window {
            bytes: 10_000,
            threshold: WINDOW_MAX,
            mss: 1000,
        };
        (Bbr::new(1), window)
    }

    #[test]
    fn startup_ends_when_the_rate_stops_growing() {
        let (mut bbr, mut window) = fresh();
        run(&mut bbr, &mut window, 5, |trip| RATE << trip);
        assert_eq!(bbr.mode, Mode::Startup);
        let (mut bbr, mut window) = fresh();
        run(&mut bbr, &mut window, 6, |_| RATE);
        assert!(matches!(bbr.mode, Mode::Probe(_)), "{:?}", bbr.mode);
    }

    #[test]
    fn the_window_is_twice_what_the_path_holds() {
        let (mut bbr, mut window) = fresh();
        run(&mut bbr, &mut window, 20, |_| RATE);
        assert_eq!(window.bytes, 2 * 20_000 + 3 * 1000);
        let gains: [u64; 3] = [192, 256, 320];
        let paced = gains.map(|gain| RATE * gain / UNIT);
        assert!(paced.contains(&bbr.pacing_rate()));
    }

    #[test]
    fn a_loss_does_not_outlast_its_recovery() {
        let (mut bbr, mut window) = fresh();
        run(&mut bbr, &mut window, 20, |_| RATE);
        let before = window.bytes;
        bbr.on_loss(&mut window, 40_000, 1000);
        assert_eq!(window.bytes, before, "one segment is lost by chance");
        bbr.on_loss(&mut window, 40_000, 25_000);
        assert_eq!(window.bytes, 16_000);
        bbr.on_recovered(&mut window);
        assert_eq!(window.bytes, before);
    }
}
