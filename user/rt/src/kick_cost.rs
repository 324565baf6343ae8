//! What it takes to tell a card of frames.
//!
//! A register of an emulated card is an exit to the hypervisor, one of a card that the machine has for itself is not, and the
//! program cannot see which it has. So the first few times are measured. Half of them may be wrong: the
//! host may have stopped us meanwhile, and a virtio card may not have wanted to be told.

use base::Duration;

const MEASURED: usize = 7;

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct KickCost {
    times: [Duration; MEASURED],
    measured: usize,
}

impl KickCost {
    /// Whether another one is to be measured.
    pub(crate) fn is_unknown(&self) -> bool {
        self.measured < MEASURED
    }

    /// One has taken so long; the cost, once it is known.
    pub(crate) fn note(&mut self, time: Duration) -> Option<Duration> {
        *self.times.get_mut(self.measured)? = time;
        self.measured += 1;
        self.times.sort_unstable_by(|one, other| other.cmp(one));
        (!self.is_unknown()).then(|| self.times[MEASURED / 2])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cost_is_what_most_took_whatever_some_did() {
        for disturbed in [0, 1, 500, 100_000] {
            let mut cost = KickCost::default();
            let times = [30, disturbed, 30, disturbed, 31, disturbed, 29];
            let mut costs = times.map(|micros| cost.note(Duration::from_micros(micros)));
            let last = costs.last_mut().and_then(Option::take).unwrap();
            assert!((29..=31).contains(&(last.as_nanos() / 1000)), "{last:?}");
            assert_eq!(costs, [None; MEASURED]);
            assert!(!cost.is_unknown());
            assert_eq!(cost.note(Duration::ZERO), None);
        }
    }
}
