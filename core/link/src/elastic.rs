//! How many CPUs run the shards of a card, by how busy they are.
//!
//! # Problem
//! One CPU takes the frames of a quiet card best: its cache is warm, and nobody else is woken. A busy
//! card needs several. How many is not known beforehand and changes with the hour.
//!
//! # Idea
//! A *shard* is a ring with the connections whose buckets lead there; it stays whole, and a CPU runs
//! it. Each window ([`Elastic::observe`]) says how busy each CPU was and how many frames each shard
//! had. When the CPUs in use were nearly full on the average for [`TAKE_WINDOWS`] windows one after
//! another, one more is taken in, and gets shards until it has its share. When one less would not be
//! full either, for the longer [`GIVE_WINDOWS`], the last one is given back, and its shards go to
//! whoever has least.
//!
//! # Binding
//! The administrator may name the CPUs among which shards move ([`Elastic::bind`]); without a word they
//! are as many as shards, from CPU 0 on. Each shard has a *home* among them, the CPU of its own number
//! if that is one, and is there when all that can be used are in use. More CPUs than shards cannot be.
//!
//! # Invariants
//! - *Inside*: no shard is ever with a CPU that was not named.
//! - *Hysteresis*: the load at which a CPU is taken in ([`FULL`]) is above the one at which it is
//!   given back ([`ROOMY`]), so a steady load is answered by one number of CPUs.
//! - *Few moves*: a change of the load moves only shards to the CPU that comes or from the one that
//!   goes; a shard that stays loses no cache.
//! - *Its own first*: a CPU that comes takes a shard whose home it is before any other, for its
//!   programs' calls prefer the one of its number; but none that is all that another CPU has, so that
//!   nobody in use is without.
//! - *What cannot be divided is not*: a CPU that is full by one shard while the others rest takes
//!   none in, for the average is what counts.
//!
//! # Not here
//! The clock, how busy a CPU is, and the handing over of a shard, which must not reorder its frames
//! (the shell's).

use alloc::vec::Vec;

use base::{CpuId, CpuSet};

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

/// Which CPU runs each shard.
#[derive(Debug)]
pub struct Elastic {
    /// By shard.
    homes: Vec<u16>,
    /// CPUs that may be used, of which the first `in_use` are: each is somebody's home.
    cpus: Vec<u16>,
    in_use: usize,
    full_windows: u32,
    roomy_windows: u32,
    /// By shard.
    runners: Vec<u16>,
}

impl Elastic {
    /// Each of so many shards (at least one) by the CPU of its number: as many may be used.
    pub fn new(shards: u16) -> Self {
        let homes: Vec<u16> = (0..shards.max(1)).collect();
        Self {
            cpus: homes.clone(),
            in_use: homes.len(),
            full_windows: 0,
            roomy_windows: 0,
            runners: homes.clone(),
            homes,
        }
    }

    /// From now on shards are with these CPUs and no others, with each at its home at first; none
    /// is named, and it is as at the beginning.
    pub fn bind(&mut self, named: CpuSet) {
        let shards = self.homes.len() as u16;
        self.homes = homes(shards, named);
        self.cpus.clear();
        for home in &self.homes {
            if !self.cpus.contains(home) {
                self.cpus.push(*home);
            }
        }
        self.in_use = self.cpus.len();
        self.runners.clone_from(&self.homes);
        (self.full_windows, self.roomy_windows) = (0, 0);
    }

    /// CPUs in use.
    pub fn in_use(&self) -> usize {
        self.in_use
    }

    /// The CPU of each shard.
    pub fn runners(&self) -> &[u16] {
        &self.runners
    }

    /// A window has passed: how busy each CPU of the machine was, in thousandths, and how many
    /// frames each shard had. Says whether that moves shards. A CPU or shard of which nothing is
    /// said was idle.
    pub fn observe(&mut self, busy: &[u32], frames: &[u64]) -> bool {
        let count = self.in_use as u32;
        let load = |cpu: &u16| busy.get(usize::from(*cpu)).copied().unwrap_or(0);
        let in_use = self.cpus.iter().take(self.in_use);
        let sum: u32 = in_use.map(|cpu| load(cpu).min(WHOLE)).sum();
        let is_full = self.in_use < self.cpus.len() && sum >= count * FULL;
        let is_roomy = count > 1 && sum <= (count - 1) * ROOMY;
        self.full_windows = if is_full { self.full_windows + 1 } else { 0 };
        self.roomy_windows = if is_roomy { self.roomy_windows + 1 } else { 0 };
        if self.full_windows == TAKE_WINDOWS {
            self.take_in(frames);
        } else if self.roomy_windows == GIVE_WINDOWS {
            self.give_back(frames);
        } else {
            return false;
        }
        (self.full_windows, self.roomy_windows) = (0, 0);
        true
    }

    /// The new one takes a shard of its own, then those of whoever has most, while it has no more
    /// than they afterwards.
    fn take_in(&mut self, frames: &[u64]) {
        let Some(new) = self.cpus.get(self.in_use).copied() else {
            return;
        };
        self.in_use += 1;
        if let Some(first) = self.first_of(new, frames) {
            self.lead(first, new);
        }
        for _ in 0..self.runners.len() {
            let loads = self.loads(frames);
            let Some((from, most)) = most_of(&loads) else {
                return;
            };
            let room = most.saturating_sub(load_of(&loads, new));
            let fits = |shard: &usize| {
                self.runners.get(*shard) == Some(&from) && weight(frames, *shard) <= room / 2
            };
            // The heaviest that fits: fewer move.
            let fitting = (0..self.runners.len()).filter(fits);
            let moved = fitting.max_by_key(|shard| weight(frames, *shard));
            let Some(shard) = moved.filter(|_| from != new) else {
                return;
            };
            self.lead(shard, new);
        }
    }

    /// The shard that `new` takes first: one of its own, and of nobody who has no other.
    fn first_of(&self, new: u16, frames: &[u64]) -> Option<usize> {
        let is_spare = |shard: &usize| {
            let runner = self.runners.get(*shard);
            let all = self.runners.iter();
            all.filter(|other| Some(*other) == runner).count() > 1
        };
        let spare = (0..self.runners.len()).filter(is_spare);
        spare.min_by_key(|shard| (self.homes.get(*shard) != Some(&new), weight(frames, *shard)))
    }

    /// The last one's shards go one by one to whoever has least, the heaviest first.
    fn give_back(&mut self, frames: &[u64]) {
        self.in_use -= 1;
        let gone = self.cpus.get(self.in_use).copied();
        let own = |shard: &usize| self.runners.get(*shard).copied() == gone;
        let mut shards: Vec<usize> = (0..self.runners.len()).filter(own).collect();
        shards.sort_by_key(|shard| core::cmp::Reverse(weight(frames, *shard)));
        for shard in shards {
            if let Some(to) = least_of(&self.loads(frames)) {
                self.lead(shard, to);
            }
        }
    }

    /// What each CPU in use has.
    fn loads(&self, frames: &[u64]) -> Vec<(u16, u64)> {
        let in_use = self.cpus.iter().take(self.in_use);
        let mut loads: Vec<(u16, u64)> = in_use.map(|cpu| (*cpu, 0)).collect();
        for (shard, runner) in self.runners.iter().enumerate() {
            if let Some((_, load)) = loads.iter_mut().find(|(cpu, _)| cpu == runner) {
                *load = load.saturating_add(weight(frames, shard));
            }
        }
        loads
    }

    fn lead(&mut self, shard: usize, to: u16) {
        if let Some(runner) = self.runners.get_mut(shard) {
            *runner = to;
        }
    }
}

/// Of each shard: its own CPU if that is named, else one that is nobody's, else any in turn.
fn homes(shards: u16, named: CpuSet) -> Vec<u16> {
    let own = CpuSet::first_of(shards.into());
    let named = if named.is_empty() { own } else { named };
    let numbers = |set: CpuSet| set.iter().map(|cpu| cpu.0 as u16);
    let mut others = numbers(named - own).chain(numbers(named).cycle());
    let home = |shard: u16| match named.contains(CpuId(shard.into())) {
        true => shard,
        false => others.next().unwrap_or(shard),
    };
    (0..shards).map(home).collect()
}

/// Shards without frames count a little: their flows may come back.
fn weight(frames: &[u64], shard: usize) -> u64 {
    let count = frames.get(shard).copied().unwrap_or(0);
    count.saturating_add(1)
}

fn load_of(loads: &[(u16, u64)], of: u16) -> u64 {
    let found = loads.iter().find(|(cpu, _)| *cpu == of);
    found.map_or(0, |(_, load)| *load)
}

fn most_of(loads: &[(u16, u64)]) -> Option<(u16, u64)> {
    loads.iter().copied().max_by_key(|(_, load)| *load)
}

fn least_of(loads: &[(u16, u64)]) -> Option<u16> {
    let least = loads.iter().min_by_key(|(_, load)| *load);
    least.map(|(cpu, _)| *cpu)
}

#[cfg(test)]
mod tests {
    use super::*;

    const CPUS: u16 = 4;
    /// Frames that fill a CPU for a window.
    const FRAMES_FULL: u64 = 10_000;

    /// How busy the CPUs are with these frames, where their shards are run.
    fn busy(elastic: &Elastic, frames: &[u64]) -> Vec<u32> {
        let mut sums = [0; CPUS as usize];
        for (runner, count) in elastic.runners().iter().zip(frames) {
            sums[usize::from(*runner)] += count;
        }
        let load = |sum: &u64| (sum * u64::from(WHOLE) / FRAMES_FULL).min(1000) as u32;
        sums.iter().map(load).collect()
    }

    fn run(elastic: &mut Elastic, frames: &[u64], windows: u32) -> u32 {
        let mut changes = 0;
        for _ in 0..windows {
            let busy = busy(elastic, frames);
            changes += u32::from(elastic.observe(&busy, frames));
        }
        changes
    }

    /// So much work in all, in thousandths of a CPU, over all shards alike.
    fn even(work: u64) -> [u64; CPUS as usize] {
        [work * FRAMES_FULL / u64::from(WHOLE) / u64::from(CPUS); CPUS as usize]
    }

    /// One whose CPUs but the first were given back.
    fn at_rest() -> Elastic {
        let mut elastic = Elastic::new(CPUS);
        run(&mut elastic, &even(0), 200);
        assert_eq!((elastic.in_use(), elastic.runners()), (1, &[0; 4][..]));
        elastic
    }

    #[test]
    fn a_quiet_card_stays_with_one_cpu_and_a_busy_one_gets_as_many_as_it_needs() {
        let mut elastic = at_rest();
        assert_eq!(run(&mut elastic, &even(700), 200), 0);
        assert_eq!(elastic.in_use(), 1);
        run(&mut elastic, &even(1500), 200);
        assert_eq!(elastic.in_use(), 2);
        run(&mut elastic, &even(9000), 200);
        assert_eq!(elastic.in_use(), CPUS.into(), "there are no more");
        assert_eq!(elastic.runners(), [0, 1, 2, 3], "each has its own");
        run(&mut elastic, &even(1000), 200);
        assert_eq!(elastic.in_use(), 2);
        run(&mut elastic, &even(100), 200);
        assert_eq!(elastic.in_use(), 1);
    }

    #[test]
    fn bursts_take_nobody_in_and_pauses_give_nobody_back() {
        let mut elastic = at_rest();
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
                let mut elastic = at_rest();
                run(&mut elastic, &even(before), 200);
                run(&mut elastic, &even(work), 200);
                let changes = run(&mut elastic, &even(work), 500);
                assert_eq!(changes, 0, "{work} after {before}");
            }
        }
    }

    #[test]
    fn one_shard_that_fills_a_cpu_has_it_alone_and_does_not_spread_the_others() {
        let frames = [20, 20, 2 * FRAMES_FULL, 20];
        let mut elastic = at_rest();
        run(&mut elastic, &frames, 1000);
        assert_eq!(elastic.in_use(), 2);
        let own = elastic.runners()[2];
        let beside = elastic.runners().iter().filter(|runner| **runner == own);
        assert_eq!(beside.count(), 1, "{:?}", elastic.runners());
        assert_eq!(run(&mut elastic, &frames, 1000), 0);
    }

    #[test]
    fn a_change_moves_only_what_comes_or_goes_and_nobody_in_use_is_without_a_shard() {
        for seed in 1..200_u64 {
            let mut random = seed;
            let mut elastic = Elastic::new(CPUS);
            for _ in 0..300 {
                let mut frames = [0; CPUS as usize];
                for count in &mut frames {
                    random = random
                        .wrapping_mul(6_364_136_223_846_793_005)
                        .wrapping_add(1);
                    *count = (random >> 40) % [200, 20_000][(seed % 2) as usize];
                }
                let before = elastic.runners().to_vec();
                let count = elastic.in_use();
                let loads = busy(&elastic, &frames);
                if !elastic.observe(&loads, &frames) {
                    assert_eq!(before, elastic.runners(), "seed {seed}");
                    continue;
                }
                let other = (count.max(elastic.in_use()) - 1) as u16;
                for (was, is) in before.iter().zip(elastic.runners()) {
                    let is_right = was == is || *was == other || *is == other;
                    assert!(
                        is_right && usize::from(*is) < elastic.in_use(),
                        "seed {seed}"
                    );
                }
                for cpu in 0..elastic.in_use() as u16 {
                    assert!(elastic.runners().contains(&cpu), "seed {seed}");
                }
            }
        }
    }

    #[test]
    fn what_is_said_of_other_cpus_or_beyond_all_reason_changes_nothing() {
        let mut elastic = Elastic::new(2);
        for _ in 0..100 {
            elastic.observe(&[u32::MAX / 2, 5000, 5000], &[u64::MAX; 9]);
        }
        assert_eq!(elastic.in_use(), 2);
        assert!(!elastic.observe(&[], &[]));
        assert_eq!(Elastic::new(0).in_use(), 1);
    }

    fn set(cpus: &[u32]) -> CpuSet {
        cpus.iter().copied().map(CpuId).collect()
    }

    #[test]
    fn bound_shards_are_at_home_with_the_cpus_that_are_named() {
        for (named, runners) in [
            (&[][..], [0, 1, 2, 3]),
            (&[0, 1, 2, 3], [0, 1, 2, 3]),
            (&[2], [2, 2, 2, 2]),
            (&[1, 2], [1, 1, 2, 2]),
            (&[3, 9], [9, 3, 9, 3]),
            (&[5, 6, 7, 8, 9], [5, 6, 7, 8]),
        ] {
            let mut elastic = at_rest();
            elastic.bind(set(named));
            assert_eq!(elastic.runners(), runners, "{named:?}");
        }
    }

    #[test]
    fn a_load_moves_shards_among_named_cpus_only_and_nobody_in_use_is_without() {
        const MACHINE: u64 = 8;
        for seed in 1..400_u64 {
            let mut random = seed;
            let mut below = |end: u64| {
                random = random
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1);
                (random >> 33) % end
            };
            let mut elastic = Elastic::new(CPUS);
            for _ in 0..20 {
                let named: Vec<u32> = (0..MACHINE as u32).filter(|_| below(3) == 0).collect();
                elastic.bind(set(&named));
                let allowed = match named.is_empty() {
                    true => (0..u32::from(CPUS)).collect(),
                    false => named,
                };
                for _ in 0..60 {
                    let load = below(2) as u32 * WHOLE;
                    let frames: Vec<u64> = (0..CPUS).map(|_| below(20_000)).collect();
                    for _ in 0..GIVE_WINDOWS {
                        elastic.observe(&[load; MACHINE as usize], &frames);
                    }
                    let mut used = elastic.runners().to_vec();
                    used.sort_unstable();
                    used.dedup();
                    assert_eq!(used.len(), elastic.in_use(), "seed {seed}");
                    let is_allowed = |cpu: &u16| allowed.contains(&u32::from(*cpu));
                    assert!(used.iter().all(is_allowed), "seed {seed}: {used:?}");
                }
            }
        }
    }

    #[test]
    fn the_load_of_a_cpu_that_is_not_named_moves_nothing() {
        let mut elastic = at_rest();
        elastic.bind(set(&[1, 6]));
        let busy = |cpus: &[usize]| {
            core::array::from_fn::<_, 8, _>(|at| match cpus.contains(&at) {
                true => WHOLE,
                false => 0,
            })
        };
        for _ in 0..GIVE_WINDOWS {
            elastic.observe(&busy(&[0, 2, 3]), &even(0));
        }
        let last = elastic.runners()[0];
        assert_eq!((elastic.in_use(), elastic.runners()), (1, &[last; 4][..]));
        for _ in 0..TAKE_WINDOWS {
            elastic.observe(&busy(&[usize::from(last)]), &even(0));
        }
        assert_eq!(elastic.in_use(), 2);
    }
}
