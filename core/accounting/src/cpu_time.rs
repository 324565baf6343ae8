//! CPU time, split by what it was used for: the program, or what the kernel did for it.
//!
//! The problem: the total is known exactly, for the clock is read whenever a thread gets or
//! leaves a CPU. Reading it at each entry to the kernel too would cost more than many calls.
//!
//! The idea: at regular moments somebody looks what runs, and counts. The exact total is
//! divided as the counts are. A later reading may know better than an earlier one, but time
//! that was told once is not taken back: a [`Split`] remembers what it told.
//!
//! Invariants: the parts add up to the exact total; none ever shrinks.

use core::ops::AddAssign;

/// What a CPU does for a thread.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mode {
    /// It runs the program.
    User,
    /// It serves a call, or does what an interrupt left to do.
    System,
    /// It handles an exception that is no page fault.
    Trap,
    /// It brings in a page of instructions.
    TextFault,
    /// It brings in any other page.
    DataFault,
}

/// How many modes there are.
pub const MODES: usize = 5;

/// What was measured: the exact run time, and how often each mode was found.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Sampled {
    /// Exact run time in nanoseconds.
    pub run_ns: u64,
    /// Samples by [`Mode`].
    pub samples: [u64; MODES],
}

impl AddAssign for Sampled {
    fn add_assign(&mut self, other: Self) {
        self.run_ns += other.run_ns;
        let pairs = self.samples.iter_mut().zip(other.samples);
        pairs.for_each(|(sum, more)| *sum += more);
    }
}

/// CPU time by who used it, in nanoseconds.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct CpuTime {
    /// The program.
    pub user_ns: u64,
    /// The kernel, for the program.
    pub system_ns: u64,
}

impl CpuTime {
    /// Both together.
    pub fn total_ns(self) -> u64 {
        self.user_ns + self.system_ns
    }
}

impl From<[u64; MODES]> for CpuTime {
    /// From nanoseconds by [`Mode`].
    fn from(parts: [u64; MODES]) -> Self {
        let user_ns = parts[Mode::User as usize];
        let system_ns = parts.iter().sum::<u64>() - user_ns;
        Self { user_ns, system_ns }
    }
}

impl AddAssign for CpuTime {
    fn add_assign(&mut self, other: Self) {
        self.user_ns += other.user_ns;
        self.system_ns += other.system_ns;
    }
}

/// Divides the run time of one thread, process or CPU.
#[derive(Clone, Debug, Default)]
pub struct Split {
    told_ns: [u64; MODES],
}

impl Split {
    /// A split that has told nothing.
    pub const fn new() -> Self {
        Self {
            told_ns: [0; MODES],
        }
    }

    /// The parts of what was measured, by [`Mode`]. What no sample speaks for is the
    /// program's. A measurement older than the last one (another CPU asked first) changes
    /// nothing.
    pub fn divide(&mut self, measured: Sampled) -> [u64; MODES] {
        let told_ns: u64 = self.told_ns.iter().sum();
        let total_ns = measured.run_ns.max(told_ns);
        let mut left_ns = total_ns - told_ns;
        for mode in Mode::System as usize..MODES {
            let due_ns = share(total_ns, measured, mode).saturating_sub(self.told_ns[mode]);
            let more_ns = due_ns.min(left_ns);
            self.told_ns[mode] += more_ns;
            left_ns -= more_ns;
        }
        self.told_ns[Mode::User as usize] += left_ns;
        self.told_ns
    }
}

/// A mode's share of `total_ns`.
fn share(total_ns: u64, measured: Sampled, mode: usize) -> u64 {
    let samples = measured.samples.map(u128::from);
    let all: u128 = samples.iter().sum();
    let share_ns = u128::from(total_ns) * samples[mode] / all.max(1);
    // No more than the total, for no more samples than all are the mode's.
    u64::try_from(share_ns).unwrap_or(total_ns)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::next;

    fn measured(run_ns: u64, user: u64, system: u64) -> Sampled {
        Sampled {
            run_ns,
            samples: [user, system, 0, 0, 0],
        }
    }

    fn divide(split: &mut Split, measured: Sampled) -> (u64, u64) {
        let time = CpuTime::from(split.divide(measured));
        (time.user_ns, time.system_ns)
    }

    #[test]
    fn the_total_is_divided_as_the_samples_are() {
        let time = divide(&mut Split::new(), measured(1000, 3, 1));
        assert_eq!(time, (750, 250));
        let samples = [5, 2, 1, 1, 1];
        let parts = Split::new().divide(Sampled {
            run_ns: 1000,
            samples,
        });
        assert_eq!(parts, [500, 200, 100, 100, 100]);
        assert_eq!(CpuTime::from(parts).system_ns, 500);
    }

    #[test]
    fn time_without_samples_is_the_programs() {
        let time = divide(&mut Split::new(), measured(1234, 0, 0));
        assert_eq!(time, (1234, 0));
    }

    #[test]
    fn what_was_told_is_not_taken_back_when_samples_say_otherwise() {
        let mut split = Split::new();
        split.divide(measured(1000, 0, 0));
        assert_eq!(divide(&mut split, measured(1500, 0, 9)), (1000, 500));
        let time = divide(&mut split, measured(1600, 1_000_000, 9));
        assert_eq!(time, (1100, 500));
    }

    #[test]
    fn an_older_measurement_changes_nothing() {
        let mut split = Split::new();
        let before = split.divide(measured(2000, 1, 1));
        assert_eq!(split.divide(measured(1500, 1, 1)), before);
    }

    #[test]
    fn the_largest_figures_do_not_overflow() {
        let time = Split::new().divide(measured(u64::MAX, u64::MAX, u64::MAX));
        assert_eq!(CpuTime::from(time).total_ns(), u64::MAX);
    }

    #[test]
    fn parts_add_up_and_never_shrink_whatever_is_measured() {
        for start in 0..200 {
            let (mut seed, mut split) = (start, Split::new());
            let (mut now, mut before) = (Sampled::default(), [0; MODES]);
            for _ in 0..200 {
                now.run_ns += next(&mut seed) % 10_000_000;
                now.samples[next(&mut seed) as usize % MODES] += next(&mut seed) % 3;
                let parts = split.divide(now);
                assert_eq!(parts.iter().sum::<u64>(), now.run_ns, "seed {start}");
                let shrinks = parts.iter().zip(before).any(|(now, before)| *now < before);
                assert!(!shrinks, "seed {start}");
                before = parts;
            }
        }
    }
}
