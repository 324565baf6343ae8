//! Long histories of threads that come, run, wait and move, beside plain lists.
//!
//! The lists say where each thread stands. Each thread is on one queue or on none; whoever is
//! picked is the best of its queue; whoever is stolen may come; what is published is true.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::world::{CPUS, MS, Task, World};
use base::{CpuId, CpuSet};
use dispatch::{Arrival, Policy, Rank};
use models::{Random, for_each_seed};

struct History {
    world: World,
    random: Random,
    seed: u64,
    tasks: Vec<Arc<Task>>,
    /// Where each thread waits, by its name.
    waits: BTreeMap<u32, u32>,
    /// Those of them that may not have come to the queue yet, and whether they were movable.
    sent: BTreeMap<u32, bool>,
    idle: [bool; CPUS],
    /// Those of them to which no thread has been sent.
    free: [bool; CPUS],
}

impl History {
    fn new(seed: u64, mut random: Random) -> Self {
        let count = 1 + random.below(CPUS);
        let tasks = (1..=12).map(|name| Task::on(random.below(count) as u32, name));
        Self {
            world: World::new(count),
            tasks: tasks.collect(),
            random,
            seed,
            waits: BTreeMap::new(),
            sent: BTreeMap::new(),
            idle: [false; CPUS],
            free: [false; CPUS],
        }
    }

    fn count(&self) -> usize {
        self.world.cpus.count
    }

    fn any_cpu(&mut self) -> u32 {
        self.random.below(self.world.cpus.count) as u32
    }

    fn any_policy(&mut self) -> Policy {
        match self.random.below(6) {
            0 => Policy::Fifo(1 + self.random.below(99) as u8),
            1 => Policy::RoundRobin(1 + self.random.below(99) as u8),
            2 => Policy::Idle,
            3 => Policy::Batch,
            _ => Policy::Normal,
        }
    }

    /// A set with a CPU that runs.
    fn any_set(&mut self) -> CpuSet {
        let some = (0..CPUS as u32)
            .filter(|_| self.random.once_in(2))
            .map(CpuId);
        some.collect::<CpuSet>() | CpuSet::one(CpuId(self.any_cpu()))
    }

    fn task(&self, name: u32) -> &Arc<Task> {
        &self.tasks[name as usize - 1]
    }

    /// Those that wait on `cpu`.
    fn waiting(&self, cpu: u32) -> Vec<Arc<Task>> {
        let here = self.waits.iter().filter(|(_, at)| **at == cpu);
        here.map(|(name, _)| self.task(*name).clone()).collect()
    }

    fn step(&mut self) {
        let task = self.tasks[self.random.below(self.tasks.len())].clone();
        let waits = self.waits.contains_key(&task.name);
        match self.random.below(10) {
            0..=3 if !waits => self.comes(&task),
            0 => self.changes_policy(&task),
            4..=6 => self.picks(),
            7 => self.balances(),
            8 => self.idles(),
            9 if !waits => self.runs(&task),
            _ => self.may_run_elsewhere(&task),
        }
        let has_come = |name: &u32| self.tasks[*name as usize - 1].place().is_some();
        self.sent
            .retain(|name, _| self.waits.contains_key(name) && !has_come(name));
        self.check();
    }

    fn runs(&mut self, task: &Task) {
        task.set_nice(self.random.below(40) as i8 - 20);
        let (cpu, millis) = (self.any_cpu(), self.random.below(20) as u64);
        self.world.run(cpu, task, millis);
    }

    fn comes(&mut self, task: &Arc<Task>) {
        let (from, seed) = (self.any_cpu(), self.seed);
        let allowed = task.affinity() & CpuSet::first_of(self.count());
        let arrival = self.world.enqueue(from, task);
        let cpu = match arrival {
            Arrival::Elsewhere(cpu) => cpu.0,
            Arrival::Here { .. } | Arrival::HereIdle => from,
        };
        if !allowed.is_empty() {
            assert!(allowed.contains(CpuId(cpu)), "seed {seed}");
        }
        let is_free = |cpu: CpuId| self.free[cpu.index()];
        if allowed.iter().any(is_free) {
            assert!(is_free(CpuId(cpu)), "a CPU idles beside it, seed {seed}");
        }
        self.free[cpu as usize] = false;
        assert_eq!(
            arrival == Arrival::HereIdle,
            from == cpu && self.idle[cpu as usize]
        );
        self.waits.insert(task.name, cpu);
        if cpu != from && task.rank() == Rank::FAIR {
            let is_movable = task.affinity() != CpuSet::one(CpuId(cpu));
            self.sent.insert(task.name, is_movable);
        }
    }

    fn may_run_elsewhere(&mut self, task: &Task) {
        let cpus = self.any_set();
        let dispatcher = &self.world.dispatcher;
        dispatcher.set_affinity(task, cpus);
    }

    fn changes_policy(&mut self, task: &Task) {
        let policy = self.any_policy();
        if !task.set_policy(policy, false) {
            return;
        }
        if self.sent.contains_key(&task.name) {
            // It comes to the queue by its new rank.
            assert!(self.world.dispatcher.take_out(task).is_none());
            return;
        }
        let found = self.world.dispatcher.take_out(task);
        let is_found = found.is_some_and(|found| found.name == task.name);
        assert!(is_found, "seed {}", self.seed);
        self.waits.remove(&task.name);
        self.comes(&self.task(task.name).clone());
    }

    fn picks(&mut self) {
        let (cpu, seed) = (self.any_cpu(), self.seed);
        let own = self.waiting(cpu);
        let all_came = !own.iter().any(|task| self.sent.contains_key(&task.name));
        let found = self.world.next(cpu);
        if found == 0 {
            // One that was bound as it was sent is not seen elsewhere before it has come.
            let is_seen = |name: &u32| self.sent.get(name) != Some(&false);
            let could = |name: &u32| is_seen(name) && self.task(*name).allows(CpuId(cpu));
            assert!(
                own.is_empty() && !self.waits.keys().any(could),
                "seed {seed}"
            );
            return;
        }
        let at = self.waits.remove(&found).expect("it waited");
        let task = self.task(found);
        assert!(at == cpu || task.allows(CpuId(cpu)), "seed {seed}");
        let key = |task: &Task| match task.rank() {
            // That of one who comes is brought near to the others'.
            Rank::FAIR if all_came => (Rank::FAIR, task.vruntime_ns()),
            rank => (rank, 0),
        };
        let best = own.iter().map(|task| key(task)).min();
        let is_best = best.is_none_or(|best| key(task) <= best);
        assert!(is_best, "a better one waits here, seed {seed}");
        assert!(
            at == cpu || own.is_empty() || task.rank().is_realtime(),
            "seed {seed}"
        );
        self.world.run(cpu, &self.task(found).clone(), 1);
    }

    fn balances(&mut self) {
        let (cpu, seed) = (self.any_cpu(), self.seed);
        let before = self.waiting(cpu).len();
        if !self.world.dispatcher.balance(self.world.at(cpu)) {
            return;
        }
        let came = |(name, at): (&u32, &u32)| {
            let place = self.task(*name).place()?;
            (place.cpu.0 != *at).then_some((*name, *at))
        };
        let moved: Vec<_> = self.waits.iter().filter_map(came).collect();
        let [(name, from)] = moved[..] else {
            panic!("{} moved, seed {seed}", moved.len());
        };
        assert!(self.waiting(from).len() >= before + 2, "seed {seed}");
        assert!(self.task(name).allows(CpuId(cpu)), "seed {seed}");
        self.waits.insert(name, cpu);
    }

    fn idles(&mut self) {
        let cpu = self.any_cpu();
        let idles = !self.idle[cpu as usize];
        (self.idle[cpu as usize], self.free[cpu as usize]) = (idles, idles);
        match idles {
            true => self.world.dispatcher.announce_idle(CpuId(cpu)),
            false => self.world.dispatcher.announce_busy(CpuId(cpu)),
        }
    }

    /// What is published is what the lists say.
    fn check(&self) {
        let seed = self.seed;
        for cpu in 0..self.count() as u32 {
            let (cpu, waiting) = (CpuId(cpu), self.waiting(cpu));
            let dispatcher = &self.world.dispatcher;
            assert_eq!(dispatcher.ready(cpu), waiting.len(), "seed {seed}");
            let stays = |task: &&Arc<Task>| match self.sent.get(&task.name) {
                Some(was_movable) => !was_movable,
                None => task.affinity() == CpuSet::one(cpu),
            };
            let movable = waiting.len() - waiting.iter().filter(stays).count();
            assert_eq!(dispatcher.movable(cpu), movable, "seed {seed}");
        }
        for task in &self.tasks {
            let place = task.place().map(|place| place.cpu.0);
            let is_sent = self.sent.contains_key(&task.name);
            let expected = self.waits.get(&task.name).filter(|_| !is_sent);
            assert_eq!(place, expected.copied(), "seed {seed}");
        }
        let is_realtime = |task: &&Arc<Task>| task.place().is_some_and(|at| at.rank < Rank::FAIR);
        let realtime = self.tasks.iter().find(is_realtime);
        let is_told = self.world.dispatcher.has_realtime();
        assert_eq!(is_told, realtime.is_some(), "seed {seed}");
        let busy = self.idle[..self.count()].iter().filter(|idle| !**idle);
        let runnable = self.world.dispatcher.runnable(&self.world.cpus);
        assert_eq!(runnable, self.waits.len() + busy.count(), "seed {seed}");
    }
}

#[test]
fn threads_stand_where_plain_lists_say() {
    for_each_seed(300, |seed, random| {
        let mut history = History::new(seed, random);
        (0..400).for_each(|_| history.step());
    });
}

/// How much of one CPU each of threads with these nice values gets, in thousandths.
fn shares(nice: &[i8], random: &mut Random) -> Vec<u64> {
    let world: World = World::new(1);
    let tasks = (1..).zip(nice).map(|(name, nice)| {
        let task = Task::on(0, name);
        task.set_nice(*nice);
        world.put(0, &task);
        task
    });
    let tasks: Vec<_> = tasks.collect();
    let (mut used, mut total) = (vec![0; tasks.len()], 0);
    for _ in 0..50_000 {
        let next = world.next(0) as usize - 1;
        let slice_us = 500 + random.below(3500) as u64;
        tasks[next].charge(slice_us * MS / 1000);
        (used[next], total) = (used[next] + slice_us, total + slice_us);
        world.put(0, &tasks[next]);
    }
    used.iter().map(|used| used * 1000 / total).collect()
}

#[test]
fn equals_get_equal_shares() {
    for_each_seed(5, |seed, mut random| {
        for share in shares(&[0; 4], &mut random) {
            assert!((245..=255).contains(&share), "{share}, seed {seed}");
        }
    });
}

#[test]
fn shares_follow_nice_values() {
    for_each_seed(5, |seed, mut random| {
        let shares = shares(&[0, 5], &mut random);
        let ratio = shares[0] as f64 / shares[1] as f64;
        assert!((2.9..3.2).contains(&ratio), "{shares:?}, seed {seed}");
    });
}
