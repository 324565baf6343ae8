//! How many CPUs take a ring's frames, by how busy they are.
//!
//! # Problem
//! One CPU takes the frames of a quiet ring best: its cache is warm, and nobody else is woken. A busy
//! ring needs several. How many is not known beforehand and changes with the hour.
//!
//! # Idea
//! Each window ([`Elastic::observe`]) says how busy each CPU was and how many frames each bucket had.
//! When the CPUs in use were nearly full on the average for [`TAKE_WINDOWS`] windows one after
//! another, one more is taken in, and gets buckets until it has its share. When one less would not be
//! full either, for the longer [`GIVE_WINDOWS`], the last one is given back, and its buckets
//! go to whoever has least. The outcome is a table for [`Steering::resteer`](crate::steer), which
//! moves each bucket without reordering its flows.
//!
//! # Invariants
//! - *Hysteresis*: the load at which a CPU is taken in ([`FULL`]) is above the one at which it is
//!   given back ([`ROOMY`]), so a steady load is answered by one number of CPUs.
//! - *Few moves*: a change moves only the buckets of the CPU that comes or goes; a bucket that
//!   stays loses no cache.
//! - *What cannot be divided is not*: a CPU that is full by one bucket while the others rest takes
//!   none in, for the average is what counts.
//!
//! # Not here
//! The clock, and how busy a CPU is (the shell's); what a bucket's flows have beside frames, such as
//! connections in the memory of one CPU, which may forbid a move.

use alloc::vec::Vec;

use crate::rss::{BUCKETS, Indirection};

/// Busy all the time.
pub const WHOLE: u32 = 1000;
/// CPUs in use are full from this average on, in thousandths.
pub const FULL: u32 = 800;
/// One less would do if its share left the others at this at most.
pub const ROOMY: u32 = 600;
/// Windows that must be full before one more is taken in: a burst is over sooner.
pub const TAKE_WINDOWS: u32 = 3;
/// Windows that must be roomy before one is given back.
pub const GIVE_WINDOWS: u32 = 20;

/// Which CPUs take a ring's frames.
#[derive(Debug)]
pub struct Elastic {
    /// CPUs that may be used, of which the first `in_use` are.
    cpus: u16,
    in_use: u16,
    full_windows: u32,
    roomy_windows: u32,
    table: Indirection,
}

impl Elastic {
    /// All frames to the first of `cpus` (at least one) CPUs.
    pub fn new(cpus: u16) -> Self {
        Self {
            cpus: cpus.max(1),
            in_use: 1,
            full_windows: 0,
            roomy_windows: 0,
            table: Indirection::even(1),
        }
    }

    /// CPUs in use.
    pub fn in_use(&self) -> u16 {
        self.in_use
    }

    /// Where buckets lead.
    pub fn table(&self) -> &Indirection {
        &self.table
    }

    /// A window has passed: how busy each CPU was, in thousandths, and how many frames each bucket
    /// had. Returns the new table if that changes anything. A CPU of which nothing is said was idle.
    pub fn observe(&mut self, busy: &[u32], frames: &[u32; BUCKETS]) -> Option<&Indirection> {
        let count = u32::from(self.in_use);
        let in_use = busy.iter().take(usize::from(self.in_use));
        let sum: u32 = in_use.map(|load| (*load).min(WHOLE)).sum();
        let is_full = self.in_use < self.cpus && sum >= count * FULL;
        let is_roomy = self.in_use > 1 && sum <= (count - 1) * ROOMY;
        self.full_windows = if is_full { self.full_windows + 1 } else { 0 };
        self.roomy_windows = if is_roomy { self.roomy_windows + 1 } else { 0 };
        if self.full_windows == TAKE_WINDOWS {
            self.take_in(frames);
        } else if self.roomy_windows == GIVE_WINDOWS {
            self.give_back(frames);
        } else {
            return None;
        }
        (self.full_windows, self.roomy_windows) = (0, 0);
        Some(&self.table)
    }

    /// The new one takes buckets of whoever has most, while that leaves them no worse off than it.
    fn take_in(&mut self, frames: &[u32; BUCKETS]) {
        let new = self.in_use;
        self.in_use += 1;
        let mut loads = self.loads(frames);
        // Each bucket moves once at most.
        for _ in 0..BUCKETS {
            let Some((from, most)) = most_of(&loads) else {
                return;
            };
            let own = load_at(&loads, new);
            let room = most.saturating_sub(own);
            let fits = |bucket: &usize| {
                let weight = weight(frames, *bucket);
                self.table.target(*bucket) == from && weight < room
            };
            // The heaviest that fits: fewer flows move.
            let moved = (0..BUCKETS).filter(fits);
            let moved = moved.max_by_key(|bucket| weight(frames, *bucket));
            let Some(bucket) = moved.filter(|_| from != new) else {
                return;
            };
            self.lead(bucket, new, frames, &mut loads);
        }
    }

    /// The last one's buckets go one by one to whoever has least, the heaviest first.
    fn give_back(&mut self, frames: &[u32; BUCKETS]) {
        self.in_use -= 1;
        let gone = self.in_use;
        let mut loads = self.loads(frames);
        let own = |bucket: &usize| self.table.target(*bucket) == gone;
        let mut buckets: Vec<usize> = (0..BUCKETS).filter(own).collect();
        buckets.sort_by_key(|bucket| core::cmp::Reverse(weight(frames, *bucket)));
        for bucket in buckets {
            let to = least_of(&loads);
            self.lead(bucket, to, frames, &mut loads);
        }
    }

    /// What each CPU in use has by the table.
    fn loads(&self, frames: &[u32; BUCKETS]) -> Vec<u64> {
        let mut loads: Vec<u64> = (0..self.in_use).map(|_| 0).collect();
        for bucket in 0..BUCKETS {
            let target = usize::from(self.table.target(bucket));
            if let Some(load) = loads.get_mut(target) {
                *load += weight(frames, bucket);
            }
        }
        loads
    }

    fn lead(&mut self, bucket: usize, to: u16, frames: &[u32; BUCKETS], loads: &mut [u64]) {
        let weight = weight(frames, bucket);
        let from = self.table.target(bucket);
        if let Some(load) = loads.get_mut(usize::from(from)) {
            *load -= weight;
        }
        if let Some(load) = loads.get_mut(usize::from(to)) {
            *load += weight;
        }
        self.table.set(bucket, to);
    }
}

/// Buckets without frames count a little: their flows may come back.
fn weight(frames: &[u32; BUCKETS], bucket: usize) -> u64 {
    frames.get(bucket).map_or(0, |count| u64::from(*count) + 1)
}

fn load_at(loads: &[u64], cpu: u16) -> u64 {
    loads.get(usize::from(cpu)).copied().unwrap_or(0)
}

fn most_of(loads: &[u64]) -> Option<(u16, u64)> {
    let all = (0..).zip(loads.iter().copied());
    all.max_by_key(|(_, load)| *load)
}

fn least_of(loads: &[u64]) -> u16 {
    let all = (0..).zip(loads.iter().copied());
    all.min_by_key(|(_, load)| *load).map_or(0, |(cpu, _)| cpu)
}

#[cfg(test)]
mod tests {
    use super::*;

    const CPUS: u16 = 4;
    /// Frames that fill a CPU for a window.
    const FRAMES_FULL: u32 = 10_000;

    /// How busy the CPUs are with these frames, where the table leads them.
    fn busy(elastic: &Elastic, frames: &[u32; BUCKETS]) -> Vec<u32> {
        let mut sums = [0; CPUS as usize];
        for (bucket, count) in frames.iter().enumerate() {
            sums[usize::from(elastic.table().target(bucket))] += count;
        }
        let load = |sum: &u32| (sum * WHOLE / FRAMES_FULL).min(WHOLE);
        sums.iter().map(load).collect()
    }

    fn run(elastic: &mut Elastic, frames: &[u32; BUCKETS], windows: u32) -> u32 {
        let mut changes = 0;
        for _ in 0..windows {
            let busy = busy(elastic, frames);
            changes += u32::from(elastic.observe(&busy, frames).is_some());
        }
        changes
    }

    /// So much work in all, in thousandths of a CPU, over all buckets alike.
    fn even(work: u32) -> [u32; BUCKETS] {
        [work * FRAMES_FULL / WHOLE / BUCKETS as u32; BUCKETS]
    }

    #[test]
    fn a_quiet_ring_stays_with_one_cpu_and_a_busy_one_gets_as_many_as_it_needs() {
        let mut elastic = Elastic::new(CPUS);
        assert_eq!(run(&mut elastic, &even(700), 200), 0);
        assert_eq!(elastic.in_use(), 1);
        run(&mut elastic, &even(1500), 200);
        assert_eq!(elastic.in_use(), 2);
        run(&mut elastic, &even(9000), 200);
        assert_eq!(elastic.in_use(), CPUS, "there are no more");
        run(&mut elastic, &even(1000), 200);
        assert_eq!(elastic.in_use(), 2);
        run(&mut elastic, &even(100), 200);
        assert_eq!(elastic.in_use(), 1);
    }

    #[test]
    fn bursts_take_nobody_in_and_pauses_give_nobody_back() {
        let mut elastic = Elastic::new(CPUS);
        for _ in 0..50 {
            run(&mut elastic, &even(3000), TAKE_WINDOWS - 1);
            run(&mut elastic, &even(100), 1);
        }
        assert_eq!(elastic.in_use(), 1);
        run(&mut elastic, &even(1500), TAKE_WINDOWS);
        assert_eq!(elastic.in_use(), 2);
        for _ in 0..50 {
            run(&mut elastic, &even(100), GIVE_WINDOWS - 1);
            run(&mut elastic, &even(1500), 1);
        }
        assert_eq!(elastic.in_use(), 2);
    }

    #[test]
    fn whatever_the_load_if_it_is_steady_the_number_becomes_so() {
        for work in (0..5000).step_by(50) {
            for before in [0, 5000] {
                let mut elastic = Elastic::new(CPUS);
                run(&mut elastic, &even(before), 200);
                run(&mut elastic, &even(work), 200);
                let changes = run(&mut elastic, &even(work), 500);
                assert_eq!(changes, 0, "{work} after {before}");
            }
        }
    }

    #[test]
    fn one_flow_that_fills_a_cpu_does_not_spread_the_others() {
        let mut frames = even(10);
        frames[5] = 2 * FRAMES_FULL;
        let mut elastic = Elastic::new(CPUS);
        run(&mut elastic, &frames, 1000);
        assert_eq!(elastic.in_use(), 2, "the others leave its CPU");
        let own = elastic.table().target(5);
        let beside = (0..BUCKETS).filter(|bucket| elastic.table().target(*bucket) == own);
        assert!(beside.count() <= BUCKETS / 2);
        assert_eq!(run(&mut elastic, &frames, 1000), 0);
    }

    #[test]
    fn a_change_moves_only_what_comes_or_goes_and_divides_the_rest_evenly() {
        for seed in 1..100_u64 {
            let mut random = seed;
            let mut frames = [0; BUCKETS];
            for count in &mut frames {
                random = random
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1);
                *count = (random >> 40) as u32 % 600;
            }
            let mut elastic = Elastic::new(CPUS);
            for _ in 0..300 {
                let before = *elastic.table();
                let count = elastic.in_use();
                let loads = busy(&elastic, &frames);
                if elastic.observe(&loads, &frames).is_none() {
                    continue;
                }
                let other = count.max(elastic.in_use()) - 1;
                for bucket in 0..BUCKETS {
                    let (was, is) = (before.target(bucket), elastic.table().target(bucket));
                    let is_right = was == is || was == other || is == other;
                    assert!(is_right && is < elastic.in_use(), "seed {seed}");
                }
            }
            let loads = elastic.loads(&frames);
            let (most, least) = (loads.iter().max(), loads.iter().min());
            let (most, least) = (most.expect("one"), least.expect("one"));
            assert!(most - least <= most / 4, "seed {seed}: {loads:?}");
        }
    }

    #[test]
    fn what_is_said_of_other_cpus_or_beyond_all_reason_changes_nothing() {
        let mut elastic = Elastic::new(2);
        for _ in 0..100 {
            elastic.observe(&[u32::MAX / 2, 5000, 5000], &[u32::MAX; BUCKETS]);
        }
        assert_eq!(elastic.in_use(), 2);
        assert!(elastic.observe(&[], &[0; BUCKETS]).is_none());
        assert_eq!(Elastic::new(0).in_use(), 1);
    }
}
