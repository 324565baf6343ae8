//! Congestion avoidance of RFC 5681: a segment more each round trip, half at a loss.

use super::Window;

#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Reno {
    /// Bytes acknowledged towards the next segment of growth.
    credit: u32,
}

impl Reno {
    pub fn grow(&mut self, window: &mut Window, acked: u32) {
        self.credit += acked.min(window.bytes);
        if self.credit >= window.bytes {
            self.credit -= window.bytes;
            window.add(window.mss);
        }
    }

    pub fn on_loss(&mut self, window: &mut Window, in_flight: u32) {
        window.threshold = (in_flight / 2).max(window.least());
        self.credit = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_window_grows_by_a_segment_each_round_trip() {
        // RFC 5681 3.1.
        let mut window = Window {
            bytes: 10_000,
            threshold: 10_000,
            mss: 1000,
        };
        let mut reno = Reno::default();
        for _ in 0..10 {
            reno.grow(&mut window, 1000);
        }
        assert_eq!(window.bytes, 11_000);
        reno.on_loss(&mut window, 11_000);
        assert_eq!(window.threshold, 5500);
        reno.on_loss(&mut window, 1000);
        assert_eq!(window.threshold, 2000, "two segments at least");
    }
}
