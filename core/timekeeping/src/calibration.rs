//! Measuring how fast our counter runs, at boot, against a reference.
//!
//! A measurement is a leg from one reading to another; it ends when its doubt is small,
//! however long that takes on a host that keeps interrupting. A pause longer than the
//! reference's round makes a leg lie without doubt (an interval timer's round is 55 ms), so
//! two legs in a row must agree.

use crate::{Rate, Reading, Reference};

/// A leg ends when it is this sharp; both together are twice as sharp.
const LEG_DOUBT_PPB: u64 = 500_000;
/// Readings after which the best leg must do.
const READINGS_MAX: u32 = 200_000;
/// Readings after which a reference that stands still is given up.
const STANDING_READINGS_MAX: u32 = 20_000;

/// A measurement in progress.
#[derive(Debug)]
pub struct Calibration {
    reference: Reference,
    start: Option<Reading>,
    previous: Option<Rate>,
    best: Option<Rate>,
    readings: u32,
}

impl Calibration {
    /// Nothing measured yet.
    pub fn new(reference: Reference) -> Self {
        Self {
            reference,
            start: None,
            previous: None,
            best: None,
            readings: 0,
        }
    }

    /// Whether more readings are of no use: the reference stands, or the host gives no
    /// quiet moment. Then [`Self::best`] is all there is.
    pub fn is_hopeless(&self) -> bool {
        let limit = match self.best {
            Some(_) => READINGS_MAX,
            None => STANDING_READINGS_MAX,
        };
        self.readings >= limit
    }

    /// The least doubtful leg so far.
    pub fn best(&self) -> Option<Rate> {
        self.best
    }

    /// Takes a reading; the rate as soon as it is sharp and confirmed.
    pub fn take(&mut self, reading: Reading) -> Option<Rate> {
        self.readings += 1;
        let Some(start) = self.start else {
            self.start = Some(reading);
            return None;
        };
        // A leg that began in a pause would need very long.
        if reading.width() < start.width() / 2 {
            self.start = Some(reading);
            return None;
        }
        let counts = self.reference.elapsed(start.count, reading.count);
        let leg = Rate::between(self.reference.hertz, counts, start, reading)?;
        if self.best.is_none_or(|best| leg.doubt_ppb < best.doubt_ppb) {
            self.best = Some(leg);
        }
        if leg.doubt_ppb > LEG_DOUBT_PPB {
            return None;
        }
        self.start = Some(reading);
        let previous = self.previous.replace(leg)?;
        previous.agrees_with(&leg).then(|| mean(previous, leg))
    }
}

fn mean(one: Rate, other: Rate) -> Rate {
    Rate {
        hertz: one.hertz.midpoint(other.hertz),
        doubt_ppb: one.doubt_ppb.midpoint(other.doubt_ppb),
    }
}
