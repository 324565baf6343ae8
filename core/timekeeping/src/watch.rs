//! Noticing by a clock chip that the host's time ran on while our counters stood.
//!
//! The chip (MC146818) shows whole seconds, so a reading at any moment says only within a
//! second what it is. But each reading bounds by how much our wall clock *leads* the chip,
//! and readings at the right moments halve what is left: ten of them settle the lead to a
//! few milliseconds, without waiting for the chip's update. After that a few readings a
//! minute, shortly before and after the update, prove that nothing jumped. When one
//! contradicts the lead, the new lead is sought in the same way, and the wall clock is due
//! to move by the difference. A jump in the first seconds, while the lead is still sought,
//! is followed as well as the lead was known by then.
//!
//! The lead itself is left alone: QEMU starts its chip at a whole second, up to a second
//! late, and it is not known by how much.

const SECOND: i64 = crate::SECOND_NS as i64;
/// The lead is known when it is known as well as this.
const SETTLED_NS: i64 = 4_000_000;
/// A lead that changed by less is the chip's drift, and not followed.
const STEP_MIN_NS: i64 = 20_000_000;
/// How far from the update the lead is verified.
const GUARD_NS: i64 = 30_000_000;
const VERIFY_SPAN_NS: i64 = 15 * SECOND;
/// A reading needs a moment's preparation.
const NOTICE_NS: i64 = 50_000_000;
/// Readings after which the lead is taken as it is known.
const SEARCH_READINGS_MAX: u32 = 40;

/// What is known of a clock chip.
#[derive(Debug, Default)]
pub struct Watch {
    /// The lead is between these.
    bounds: Option<(i64, i64)>,
    settled: Option<i64>,
    is_searching: bool,
    readings: u32,
    verifies_late: bool,
}

impl Watch {
    /// Takes a reading: the chip showed `seconds` at some moment between two at which the
    /// wall clock showed `before_ns` and `after_ns`, all since 1970. Returns by how much
    /// the wall clock must move, 0 for not.
    pub fn take(&mut self, before_ns: i64, seconds: i64, after_ns: i64) -> i64 {
        let seen = (
            before_ns - (seconds + 1).saturating_mul(SECOND),
            after_ns - seconds.saturating_mul(SECOND),
        );
        let both = self
            .bounds
            .map(|(least, most)| (least.max(seen.0), most.min(seen.1)))
            .filter(|(least, most)| least <= most);
        if both.is_none() {
            // While it was still sought, it is known as well as it was found by now.
            self.settled = self.settled.or(self.middle());
            self.is_searching = true;
            self.readings = 0;
        }
        let (least, most) = both.unwrap_or(seen);
        self.bounds = Some((least, most));
        self.readings += 1;
        let is_known = most - least <= SETTLED_NS || self.readings > SEARCH_READINGS_MAX;
        if !self.is_searching || !is_known {
            return 0;
        }
        self.is_searching = false;
        self.settle(i64::midpoint(least, most))
    }

    fn middle(&self) -> Option<i64> {
        self.bounds.map(|(least, most)| i64::midpoint(least, most))
    }

    fn settle(&mut self, lead: i64) -> i64 {
        let step = self.settled.map_or(0, |settled| settled - lead);
        if step.abs() < STEP_MIN_NS {
            self.settled = Some(lead);
            return 0;
        }
        self.moved(step);
        step
    }

    /// The wall clock moved by `step_ns` (a program set it, or [`Self::take`] asked).
    pub fn moved(&mut self, step_ns: i64) {
        self.bounds = self
            .bounds
            .map(|(least, most)| (least + step_ns, most + step_ns));
    }

    /// How long to wait for the next reading, when the wall clock shows `now_ns`.
    pub fn wait_ns(&mut self, now_ns: i64) -> u64 {
        let Some((least, most)) = self.bounds else {
            return 0;
        };
        // When the chip's second changes, as far as we know.
        let until_update = SECOND - (now_ns - i64::midpoint(least, most)).rem_euclid(SECOND);
        let wait = if self.is_searching {
            until_update
        } else {
            self.verifies_late = !self.verifies_late;
            let guard = GUARD_NS.max((most - least) / 2 + GUARD_NS);
            let side = if self.verifies_late { guard } else { -guard };
            VERIFY_SPAN_NS + until_update + side
        };
        let later = if wait < NOTICE_NS {
            wait + SECOND
        } else {
            wait
        };
        later as u64
    }
}
