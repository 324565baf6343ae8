//! CPU time, split into a program's own and what the kernel did for it.
//!
//! The problem: the total is known exactly, for the clock is read whenever a thread gets or
//! leaves a CPU. Reading it at each entry to the kernel too would cost more than many calls.
//!
//! The idea: at regular moments somebody looks whether the program or the kernel runs, and
//! counts. The exact total is divided as the counts are. A later reading may know better than
//! an earlier one, but time that was told once is not taken back: a [`Split`] remembers what
//! it told.
//!
//! Invariants: user and system time add up to the exact total; neither ever shrinks.

use core::ops::AddAssign;

/// What was measured: the exact run time, and how often who was found running.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Sampled {
    /// Exact run time in nanoseconds.
    pub run_ns: u64,
    /// Samples that found the program.
    pub user: u64,
    /// Samples that found the kernel.
    pub system: u64,
}

impl AddAssign for Sampled {
    fn add_assign(&mut self, other: Self) {
        self.run_ns += other.run_ns;
        self.user += other.user;
        self.system += other.system;
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

impl AddAssign for CpuTime {
    fn add_assign(&mut self, other: Self) {
        self.user_ns += other.user_ns;
        self.system_ns += other.system_ns;
    }
}

/// Divides the run time of one thread, process or CPU.
#[derive(Clone, Debug, Default)]
pub struct Split {
    told: CpuTime,
}

impl Split {
    /// A split that has told nothing.
    pub const fn new() -> Self {
        let told = CpuTime {
            user_ns: 0,
            system_ns: 0,
        };
        Self { told }
    }

    /// The parts of what was measured. Without any sample all of it is the program's. A
    /// measurement older than the last one (another CPU asked first) changes nothing.
    pub fn divide(&mut self, measured: Sampled) -> CpuTime {
        let total_ns = measured.run_ns.max(self.told.total_ns());
        let most_ns = total_ns - self.told.user_ns;
        let system_ns = share(total_ns, measured).clamp(self.told.system_ns, most_ns);
        self.told = CpuTime {
            user_ns: total_ns - system_ns,
            system_ns,
        };
        self.told
    }
}

/// The kernel's share of `total_ns`.
fn share(total_ns: u64, measured: Sampled) -> u64 {
    let samples = u128::from(measured.user) + u128::from(measured.system);
    let share_ns = u128::from(total_ns) * u128::from(measured.system) / samples.max(1);
    // No more than the total, for no more samples than all are the kernel's.
    u64::try_from(share_ns).unwrap_or(total_ns)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measured(run_ns: u64, user: u64, system: u64) -> Sampled {
        Sampled {
            run_ns,
            user,
            system,
        }
    }

    #[test]
    fn the_total_is_divided_as_the_samples_are() {
        let time = Split::new().divide(measured(1000, 3, 1));
        assert_eq!((time.user_ns, time.system_ns), (750, 250));
    }

    #[test]
    fn time_without_samples_is_the_programs() {
        let time = Split::new().divide(measured(1234, 0, 0));
        assert_eq!((time.user_ns, time.system_ns), (1234, 0));
    }

    #[test]
    fn what_was_told_is_not_taken_back_when_samples_say_otherwise() {
        let mut split = Split::new();
        split.divide(measured(1000, 0, 0));
        let time = split.divide(measured(1500, 0, 9));
        assert_eq!((time.user_ns, time.system_ns), (1000, 500));
        let time = split.divide(measured(1600, 1_000_000, 9));
        assert_eq!((time.user_ns, time.system_ns), (1100, 500));
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
        assert_eq!(time.total_ns(), u64::MAX);
    }

    /// A generator of Knuth's (MMIX), so that a failure can be repeated.
    fn next(seed: &mut u64) -> u64 {
        *seed = seed
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        *seed >> 33
    }

    #[test]
    fn parts_add_up_and_never_shrink_whatever_is_measured() {
        for start in 0..200 {
            let (mut seed, mut split) = (start, Split::new());
            let (mut now, mut before) = (Sampled::default(), CpuTime::default());
            for _ in 0..200 {
                now.run_ns += next(&mut seed) % 10_000_000;
                now.user += next(&mut seed) % 3;
                now.system += next(&mut seed) % 3;
                let time = split.divide(now);
                assert_eq!(time.total_ns(), now.run_ns, "seed {start}");
                assert!(time.user_ns >= before.user_ns, "seed {start}");
                assert!(time.system_ns >= before.system_ns, "seed {start}");
                before = time;
            }
        }
    }
}
