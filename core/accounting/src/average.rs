//! How many threads wanted a CPU, averaged over the last 1, 5 and 15 minutes (proc(5),
//! sysinfo(2)).
//!
//! At each step the averages move towards the number of threads that want a CPU now, the longer
//! the time that they stand for, the less. Whoever runs advances them; while nobody ran nobody
//! wanted a CPU, so steps that were missed count as none.

use core::time::Duration;

/// Time between two steps, as on Linux.
pub const STEP: Duration = Duration::from_secs(5);
/// Bits of a fraction.
const FRACTION_BITS: u32 = 32;
/// What is left of a value after a step: 2^32 e^(-5 s / 60 s), and for 300 s and 900 s.
const KEPT: [u64; 3] = [3_951_560_672, 4_223_977_731, 4_271_172_524];
/// After so many steps without a thread nothing is left of any value.
const STEPS_MAX: u64 = 1 << 13;

/// The three averages.
#[derive(Clone, Copy, Debug, Default)]
pub struct LoadAverages {
    scaled: [u64; 3],
}

impl LoadAverages {
    /// Nobody wanted a CPU yet.
    pub const fn new() -> Self {
        Self { scaled: [0; 3] }
    }

    /// So many steps have passed; at the last one `runnable` threads wanted a CPU.
    pub fn advance(&mut self, steps: u64, runnable: u64) {
        for step in (0..steps.min(STEPS_MAX)).rev() {
            let target = if step == 0 { runnable } else { 0 };
            for (value, kept) in self.scaled.iter_mut().zip(KEPT) {
                let old = u128::from(*value) * u128::from(kept);
                let new =
                    u128::from(target << FRACTION_BITS) * u128::from((1 << FRACTION_BITS) - kept);
                *value = ((old + new) >> FRACTION_BITS) as u64;
            }
        }
    }

    /// The averages, with `bits` bits of fraction, at most 32.
    pub fn scaled_by(&self, bits: u32) -> [u64; 3] {
        self.scaled.map(|value| value >> (FRACTION_BITS - bits))
    }

    /// The averages in hundredths, rounded.
    pub fn hundredths(&self) -> [u64; 3] {
        self.scaled
            .map(|value| (value * 100 + (1 << (FRACTION_BITS - 1))) >> FRACTION_BITS)
    }
}

#[cfg(test)]
mod tests {
    use super::LoadAverages;

    const MINUTE: usize = 12;

    fn after(minutes: usize, runnable: u64) -> LoadAverages {
        let mut averages = LoadAverages::new();
        (0..minutes * MINUTE).for_each(|_| averages.advance(1, runnable));
        averages
    }

    #[test]
    fn each_average_reaches_two_thirds_of_a_load_in_its_time() {
        // 1 - 1/e.
        assert_eq!(after(1, 1).hundredths()[0], 63);
        assert_eq!(after(5, 1).hundredths()[1], 63);
        assert_eq!(after(15, 1).hundredths()[2], 63);
    }

    #[test]
    fn a_lasting_load_is_what_it_is() {
        assert_eq!(after(120, 3).hundredths(), [300, 300, 300]);
        assert_eq!(
            after(120, 3)
                .scaled_by(16)
                .map(|value| (value + (1 << 15)) >> 16),
            [3, 3, 3]
        );
    }

    #[test]
    fn steps_that_nobody_saw_count_as_idle() {
        let (mut seen, mut missed) = (after(10, 2), after(10, 2));
        (0..7).for_each(|_| seen.advance(1, 0));
        seen.advance(1, 4);
        missed.advance(8, 4);
        assert_eq!(seen.hundredths(), missed.hundredths());
        missed.advance(u64::MAX, 0);
        assert_eq!(missed.hundredths(), [0, 0, 0]);
    }
}
