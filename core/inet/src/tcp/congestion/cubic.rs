//! CUBIC (RFC 9438): the window as a cubic function of the time since the last loss.
//!
//! The function is flat around the window at which the last loss came (`most`), so that the
//! flow stays there long, and steep far from it; it does not depend on the round trip.
//! Where Reno would be faster (short or slow paths), the window follows an estimate of it.
//!
//! Time is in milliseconds, windows in bytes, the constant C = 0.4 segments a cubic second.

use base::Instant;

use super::{Ack, Window};

/// RFC 9438 4.6: what is left of the window after a loss, in tenths.
const BETA_TENTHS: u64 = 7;
/// RFC 9438 4.3: growth of the estimate of Reno that is as aggressive, in thousandths.
const ALPHA_MILLI: u64 = 529;
/// Times beyond this are cut off: the window has long met another limit.
const MILLIS_MAX: u64 = 60_000;

/// The state since the last loss.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Cubic {
    /// When congestion avoidance began; `None` right after a loss.
    since: Option<Instant>,
    /// The window at which the function is flat (`W_max`).
    most: u32,
    /// When it is reached, in milliseconds after `since` (`K`).
    reached_after: u64,
    /// The window before the last reduction.
    prior: u32,
    /// What Reno's window would be (`W_est`).
    reno: u32,
    /// Remainders of both growths.
    credit: u64,
    reno_credit: u64,
}

impl Cubic {
    pub fn on_loss(&mut self, window: &mut Window, in_flight: u32) {
        let had = in_flight.min(window.bytes).max(window.mss);
        // RFC 9438 4.7: a flow that lost below its last maximum makes room for others.
        self.most = if had < self.most {
            (u64::from(had) * (10 + BETA_TENTHS) / 20) as u32
        } else {
            had
        };
        self.prior = had;
        self.since = None;
        let left = (u64::from(had) * BETA_TENTHS / 10) as u32;
        window.threshold = left.max(window.least());
    }

    /// Time in which nothing was sent is no time of growth (RFC 9438 4.2).
    pub fn on_idle(&mut self) {
        self.since = None;
    }

    fn begin(&mut self, window: &Window, now: Instant) {
        self.since = Some(now);
        (self.credit, self.reno_credit) = (0, 0);
        self.reno = window.bytes;
        self.most = self.most.max(window.bytes);
        // K = cbrt((W_max - cwnd) / C), in segments and seconds.
        let below = u64::from(self.most - window.bytes);
        self.reached_after = cube_root(below * 2_500_000_000 / u64::from(window.mss));
    }

    /// `W_cubic` so many milliseconds after the beginning, in bytes.
    fn at(&self, millis: u64, mss: u32) -> u64 {
        let distance = millis.abs_diff(self.reached_after).min(MILLIS_MAX);
        // C * distance^3 segments: the cube in units of 10^6 to fit.
        let offset = distance.pow(3) / 1000 * 2 * u64::from(mss) / 5_000_000;
        if millis >= self.reached_after {
            u64::from(self.most) + offset
        } else {
            u64::from(self.most).saturating_sub(offset)
        }
    }

    pub fn grow(&mut self, window: &mut Window, ack: &Ack) {
        if self.since.is_none() {
            self.begin(window, ack.now);
        }
        let elapsed = ack.now.since(self.since.unwrap_or(ack.now));
        let (bytes, acked) = (u64::from(window.bytes), u64::from(ack.acked));
        self.grow_reno(window, acked);
        let now = elapsed.as_millis();
        if self.at(now, window.mss) < u64::from(self.reno) {
            window.bytes = window.bytes.max(self.reno);
            return;
        }
        // RFC 9438 4.2: towards where the function is a round trip later, at most half as
        // much again.
        let later = now + ack.smoothed.as_millis();
        let target = self.at(later, window.mss).clamp(bytes, bytes * 3 / 2);
        self.credit += (target - bytes) * acked;
        window.add((self.credit / bytes) as u32);
        self.credit %= bytes;
    }

    /// RFC 9438 4.3.
    fn grow_reno(&mut self, window: &Window, acked: u64) {
        let alpha = if self.reno >= self.prior {
            1000
        } else {
            ALPHA_MILLI
        };
        let bytes = u64::from(window.bytes) * 1000;
        self.reno_credit += alpha * u64::from(window.mss) * acked;
        self.reno = self.reno.saturating_add((self.reno_credit / bytes) as u32);
        self.reno_credit %= bytes;
    }
}

/// The integer cube root, rounded down.
fn cube_root(value: u64) -> u64 {
    let (mut low, mut high) = (0u64, 2_642_245);
    while low < high {
        let middle = (low + high).div_ceil(2);
        if middle.pow(3) <= value {
            low = middle;
        } else {
            high = middle - 1;
        }
    }
    low
}

#[cfg(test)]
mod tests {
    use base::Duration;

    use super::super::tests::ack;
    use super::*;

    fn window(bytes: u32) -> Window {
        Window {
            bytes,
            threshold: 0,
            mss: 1000,
        }
    }

    /// Round trips of 100 ms in which the whole window is acknowledged.
    fn run(cubic: &mut Cubic, window: &mut Window, seconds: u64) {
        for trip in 0..10 * seconds {
            let now = Instant::from_millis(1000 + 100 * trip);
            for _ in 0..window.bytes / 1000 {
                cubic.grow(window, &ack(now, 1000));
            }
        }
    }

    #[test]
    fn roots_are_exact() {
        for root in [0, 1, 2, 1000, 2_642_245] {
            let cube: u64 = root * root * root;
            assert_eq!(cube_root(cube), root);
            assert_eq!(cube_root(cube.saturating_sub(1)), root.saturating_sub(1));
        }
    }

    #[test]
    fn a_loss_leaves_seven_tenths() {
        // RFC 9438 4.6.
        let mut window = window(100_000);
        let mut cubic = Cubic::default();
        cubic.on_loss(&mut window, 100_000);
        assert_eq!((window.threshold, cubic.most), (70_000, 100_000));
    }

    #[test]
    fn a_second_loss_below_the_maximum_makes_room() {
        // RFC 9438 4.7: (1 + beta) / 2.
        let mut window = window(100_000);
        let mut cubic = Cubic::default();
        cubic.on_loss(&mut window, 100_000);
        window.bytes = 80_000;
        cubic.on_loss(&mut window, 80_000);
        assert_eq!(cubic.most, 68_000);
    }

    #[test]
    fn the_window_returns_to_its_maximum_at_time_k_and_stays_there() {
        // RFC 9438 4.2: K = cbrt(300 segments / 0.4) = 9.09 s.
        let mut window = window(1_000_000);
        let mut cubic = Cubic::default();
        cubic.on_loss(&mut window, 1_000_000);
        window.bytes = window.threshold;
        run(&mut cubic, &mut window, 9);
        assert_eq!(cubic.reached_after, 9085);
        assert!((990_000..=1_001_000).contains(&window.bytes), "{window:?}");
        let mut early = self::window(700_000);
        let mut other = Cubic {
            most: 1_000_000,
            prior: 1_000_000,
            ..Cubic::default()
        };
        run(&mut other, &mut early, 5);
        assert!(
            early.bytes > 960_000,
            "concave: most of the way in half the time"
        );
    }

    #[test]
    fn a_short_path_grows_as_reno_does() {
        // RFC 9438 4.3: at 1 ms and 20 segments the estimate is ahead of the function.
        let mut window = window(20_000);
        let mut cubic = Cubic::default();
        cubic.on_loss(&mut window, 20_000);
        window.bytes = window.threshold;
        for trip in 0..100 {
            let ack = Ack {
                smoothed: Duration::from_millis(1),
                ..ack(Instant::from_millis(1000 + trip), window.bytes)
            };
            cubic.grow(&mut window, &ack);
        }
        assert!(window.bytes > 60_000, "{window:?}");
    }
}
