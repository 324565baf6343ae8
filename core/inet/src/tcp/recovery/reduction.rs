//! How fast the window shrinks: proportional rate reduction (RFC 6937).
//!
//! In recovery each byte that is delivered lets as much out as brings what is in flight down
//! to the new threshold by the time everything outstanding has been acknowledged, neither
//! in silence nor in a burst. Below the threshold (much was lost), slow start brings it up
//! again, a segment beyond what was delivered for each acknowledgement.

use super::super::delivery::Delivery;
use super::super::tcb::Tcb;
use super::Phase;

/// Counters of an episode, in bytes.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Reduction {
    /// In flight at its beginning (`RecoverFS`).
    flight: u32,
    delivered: u32,
    pub(super) out: u32,
}

impl Reduction {
    pub fn new(flight: u32) -> Self {
        Self {
            flight: flight.max(1),
            delivered: 0,
            out: 0,
        }
    }

    /// Bytes that may leave now that `bytes` more were delivered; RFC 6937 section 3 with the
    /// slow-start bound.
    fn allow(&mut self, bytes: u32, pipe: u32, threshold: u32, mss: u32) -> u32 {
        self.delivered += bytes;
        if pipe > threshold {
            let due = u64::from(self.delivered) * u64::from(threshold);
            let due = due.div_ceil(u64::from(self.flight)) as u32;
            return due.saturating_sub(self.out);
        }
        let owed = self.delivered.saturating_sub(self.out).max(bytes);
        (threshold - pipe).min(owed + mss)
    }
}

impl Tcb {
    /// Sets the window of a shrinking flight.
    pub(super) fn reduce(&mut self, news: &Delivery) {
        let is_shrinking = matches!(self.recovery.phase, Phase::Fast | Phase::Marked);
        if !is_shrinking || self.congestion.is_model() {
            return;
        }
        let (pipe, mss) = (self.pipe(), u32::from(self.sender.mss));
        let threshold = self.congestion.threshold();
        let Some(episode) = &mut self.recovery.episode else {
            return;
        };
        // Without SACK, each acknowledgement says that a segment has arrived.
        let bytes = if self.is_sack_ok { news.bytes } else { mss };
        let mut room = episode.reduction.allow(bytes, pipe, threshold, mss);
        if episode.reduction.out == 0 {
            // RFC 6937: the fast retransmission leaves whatever the window.
            room = room.max(mss);
        }
        self.congestion.set_window(pipe.saturating_add(room));
    }

    /// Something has left.
    #[inline]
    pub(in super::super) fn count_out(&mut self, bytes: u32) {
        if let Some(episode) = &mut self.recovery.episode {
            let reduction = &mut episode.reduction;
            reduction.out = reduction.out.saturating_add(bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_single_loss_halves_the_flight_over_one_round_trip() {
        // RFC 6937 section 4's example: 20 segments, the first lost, ssthresh 10.
        let mut reduction = Reduction::new(20);
        let (mut pipe, mut sent) = (19, 0);
        for _ in 0..19 {
            pipe -= 1;
            let allowed = reduction.allow(1, pipe, 10, 1);
            reduction.out += allowed;
            (pipe, sent) = (pipe + allowed, sent + allowed);
        }
        assert_eq!((pipe, sent), (10, 10));
    }

    #[test]
    fn after_heavy_loss_the_flight_grows_back_to_the_threshold() {
        let mut reduction = Reduction::new(20);
        let mut pipe = 4;
        for _ in 0..4 {
            pipe -= 1;
            let allowed = reduction.allow(1, pipe, 10, 1);
            assert!(allowed >= 2, "one more than was delivered");
            reduction.out += allowed;
            pipe += allowed;
        }
        assert_eq!(pipe, 8);
    }
}
