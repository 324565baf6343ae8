//! Following a reference for ever.
//!
//! Between two samples the reference says how long it was, and our counter's speed follows;
//! what the clock is ahead or behind by then is made good until the next sample, at
//! [`SLEW_MAX`] at most. The spans between samples double, so that a machine that was
//! measured in a hurry is right within seconds and an idle one is woken seldom.
//!
//! When counter and reference disagree by more than any drift, one of them stood while the
//! other ran (a machine was stopped, or its host slept). No clock that only counts can make
//! that good, so it is followed from there on; twice in a row, and it is the rate that was
//! wrong.

use crate::{Rate, Reading, Reference, SECOND_NS, Speed};

/// The clock is never sped up or slowed down by more than this, as with adjtime(3).
pub const SLEW_MAX: Speed = Speed::from_ppm(500);

const FIRST_SPAN_NS: u64 = SECOND_NS / 4;
const LAST_SPAN_NS: u64 = 64 * SECOND_NS;
/// What the speed of a sound counter may change by from one sample to the next.
const DRIFT_PPB: u64 = 50_000;
/// Sharper than this every measurement of the speed is taken.
const SHARP_PPB: u64 = 500;
/// An error above is not made good: it would take hours.
const CHASED_NS: u64 = SECOND_NS / 2;

/// What follows from a sample.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// The clock follows the reference.
    Followed,
    /// Counter and reference do not agree on how long it was.
    Jumped,
}

/// A clock and the reference that it follows.
#[derive(Debug)]
pub struct Discipline {
    reference: Reference,
    rate: Rate,
    last: Reading,
    /// What the clock should have shown at the last sample.
    target_ns: u64,
    span_ns: u64,
    slew: Speed,
    jumped: bool,
}

impl Discipline {
    /// From a first sample on, at which the clock showed `now_ns`.
    pub fn new(reference: Reference, rate: Rate, first: Reading, now_ns: u64) -> Self {
        Self {
            reference,
            rate,
            last: first,
            target_ns: now_ns,
            span_ns: FIRST_SPAN_NS,
            slew: Speed::NOMINAL,
            jumped: false,
        }
    }

    /// The speed of our counter.
    pub fn rate(&self) -> Rate {
        self.rate
    }

    /// By how much the clock is to run faster than that until the next sample.
    pub fn slew(&self) -> Speed {
        self.slew
    }

    /// When to take the next sample, from the last one.
    pub fn span_ns(&self) -> u64 {
        self.span_ns
    }

    /// Takes a sample, in whose middle the clock showed `shown_ns`.
    pub fn take(&mut self, reading: Reading, shown_ns: u64) -> Outcome {
        let ticks = reading.middle().wrapping_sub(self.last.middle());
        let hertz = self.reference.hertz;
        let expected = scaled(ticks, hertz, self.rate.hertz);
        let counts = self
            .reference
            .elapsed_near(self.last.count, reading.count, expected);
        let measured = Rate::between(hertz, counts, self.last, reading);
        let elapsed_ns = scaled(counts, SECOND_NS, hertz);
        let bracket_ns = scaled(reading.width(), SECOND_NS, self.rate.hertz) / 2;
        self.last = reading;
        self.target_ns += elapsed_ns;
        let outcome = match measured {
            Some(measured) if self.is_plausible(measured) => self.follow(measured),
            measured => self.jump(measured, shown_ns),
        };
        let error_ns = shown_ns.abs_diff(self.target_ns);
        if error_ns > CHASED_NS {
            self.target_ns = shown_ns;
        }
        self.span_ns = (self.span_ns * 2).min(LAST_SPAN_NS);
        let certain_ns = error_ns.saturating_sub(bracket_ns) as i64;
        let gain_ns = match shown_ns > self.target_ns {
            true => -certain_ns,
            false => certain_ns,
        };
        let is_chased = error_ns <= CHASED_NS && outcome == Outcome::Followed;
        self.slew = Speed::gaining(if is_chased { gain_ns } else { 0 }, self.span_ns, SLEW_MAX);
        outcome
    }

    fn is_plausible(&self, measured: Rate) -> bool {
        let drifted = Rate {
            doubt_ppb: self.rate.doubt_ppb.saturating_add(DRIFT_PPB),
            ..self.rate
        };
        drifted.agrees_with(&measured)
    }

    fn follow(&mut self, measured: Rate) -> Outcome {
        self.jumped = false;
        if measured.doubt_ppb <= self.rate.doubt_ppb.max(SHARP_PPB) {
            self.rate = measured;
        } else {
            // What was known grows old.
            self.rate.doubt_ppb += SHARP_PPB;
        }
        Outcome::Followed
    }

    fn jump(&mut self, measured: Option<Rate>, shown_ns: u64) -> Outcome {
        self.target_ns = shown_ns;
        if let Some(measured) = measured
            && core::mem::replace(&mut self.jumped, true)
        {
            self.rate = measured;
            self.span_ns = FIRST_SPAN_NS;
        }
        Outcome::Jumped
    }
}

/// `value * by / from`.
fn scaled(value: u64, by: u64, from: u64) -> u64 {
    (u128::from(value) * u128::from(by) / u128::from(from.max(1))) as u64
}
