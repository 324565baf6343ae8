//! Threads in a queue, which get the lock in the order in which they came, and whom nobody
//! overtakes once the first has waited long enough.

#![forbid(unsafe_code)]

use std::array::from_fn;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread;

use base::CpuId;
use spinlock::{Machine, Native, RawLock, Waiter};

const CPUS: usize = 4;
const ROUNDS: usize = 200;

struct World {
    lock: RawLock<Native>,
    waiters: [Waiter<Native>; CPUS],
    /// Turns before a CPU queues.
    tries: u32,
    /// Turns that a pause is worth: many if it is a nap.
    worth: u32,
    /// Pauses that each CPU has made in this round.
    pauses: [AtomicU32; CPUS],
}

struct Cpu<'a>(&'a World, u32);

impl Machine<Native> for Cpu<'_> {
    const TURNS_UNTIL_RESERVED: u32 = 3;

    fn turns_before_queue(&self) -> u32 {
        self.0.tries
    }

    fn me(&self) -> CpuId {
        CpuId(self.1)
    }

    fn waiter(&self, cpu: CpuId) -> &Waiter<Native> {
        &self.0.waiters[cpu.index()]
    }

    fn pause(&self, _turns: u32) -> u32 {
        self.0.pauses[self.1 as usize].fetch_add(1, Ordering::SeqCst);
        thread::yield_now();
        self.0.worth
    }
}

impl Default for World {
    fn default() -> Self {
        Self {
            lock: RawLock::new(),
            waiters: Default::default(),
            tries: 0,
            worth: 1,
            pauses: Default::default(),
        }
    }
}

impl World {
    fn has_paused(&self, cpu: u32, times: u32) -> bool {
        self.pauses[cpu as usize].load(Ordering::SeqCst) >= times
    }

    fn until_it_pauses(&self, cpu: u32, times: u32) {
        while !self.has_paused(cpu, times) {
            thread::yield_now();
        }
    }
}

#[test]
fn who_came_first_gets_the_lock_first_in_each_round() {
    let mut world = World::default();
    for round in 0..ROUNDS {
        world.pauses = from_fn(|_| AtomicU32::new(0));
        let (world, order) = (&world, &Mutex::new(Vec::new()));
        assert!(world.lock.try_lock());
        thread::scope(|scope| {
            for cpu in 0..CPUS as u32 {
                scope.spawn(move || {
                    let turns = world.lock.wait(&Cpu(world, cpu));
                    assert!(turns > 0, "round {round}: CPU {cpu} waited");
                    order.lock().unwrap().push(cpu);
                    world.lock.unlock();
                });
                world.until_it_pauses(cpu, 1);
            }
            world.lock.unlock();
        });
        assert_eq!(*order.lock().unwrap(), [0, 1, 2, 3], "round {round}");
    }
}

#[test]
fn who_tries_first_gets_a_lock_that_becomes_free_without_the_queue() {
    let world = &World {
        tries: u32::MAX,
        ..World::default()
    };
    assert!(world.lock.try_lock());
    thread::scope(|scope| {
        scope.spawn(move || {
            world.lock.wait(&Cpu(world, 0));
            world.lock.unlock();
        });
        // More than a first one waits until it reserves the lock.
        world.until_it_pauses(0, 10);
        world.lock.unlock();
    });
    assert!(world.lock.try_lock(), "nobody waits any more");
}

#[test]
fn nobody_overtakes_a_first_one_that_has_waited_long() {
    is_not_overtaken(&World::default(), 5);
}

#[test]
fn nobody_overtakes_a_first_one_that_has_napped() {
    let world = World {
        worth: 1000,
        ..World::default()
    };
    is_not_overtaken(&world, 2);
}

/// The first one has reserved the lock after one pause less than `pauses`.
fn is_not_overtaken(world: &World, pauses: u32) {
    let is_seen = &AtomicBool::new(false);
    assert!(world.lock.try_lock());
    thread::scope(|scope| {
        scope.spawn(move || {
            world.lock.wait(&Cpu(world, 0));
            while !is_seen.load(Ordering::SeqCst) {
                thread::yield_now();
            }
            world.lock.unlock();
        });
        world.until_it_pauses(0, pauses);
        world.lock.unlock();
        assert!(!world.lock.try_lock(), "the lock is reserved or taken");
        is_seen.store(true, Ordering::SeqCst);
    });
    assert!(world.lock.try_lock(), "nobody waits any more");
}
