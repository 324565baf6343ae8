//! `loom` runs the lock's own code with two and three CPUs in all orders that matter: no two have
//! it at once, each sees what the one before it wrote, and all get it.
//!
//! The data is a cell that loom watches: an access that does not happen after the last holder's
//! is reported.

#![forbid(unsafe_code)]

mod watched;

use base::CpuId;
use loom::sync::Arc;
use loom::sync::atomic::{AtomicU64, Ordering};
use spinlock::{Machine, RawLock, Waiter};
use watched::Watched;

/// Forced switches of the running thread that loom tries in one execution of `cpus`: most races
/// need two, and with three CPUs one makes for minutes.
const fn preemptions_max(cpus: usize) -> usize {
    if cpus == 2 { 3 } else { 1 }
}

/// A machine whose first waiters reserve the lock after `TURNS` looks at it.
struct World<const CPUS: usize> {
    lock: RawLock<Watched>,
    waiters: [Waiter<Watched>; CPUS],
    /// Read and written apart, so that an update is lost unless holders exclude each other, and
    /// with no order of its own, so that one is lost unless they happen one after the other.
    uses: AtomicU64,
}

struct Cpu<'a, const CPUS: usize, const TURNS: u32>(&'a World<CPUS>, u32);

impl<const CPUS: usize, const TURNS: u32> Machine<Watched> for Cpu<'_, CPUS, TURNS> {
    const TURNS_UNTIL_RESERVED: u32 = TURNS;

    fn turns_before_queue(&self) -> u32 {
        0
    }

    fn me(&self) -> CpuId {
        CpuId(self.1)
    }

    fn waiter(&self, cpu: CpuId) -> &Waiter<Watched> {
        &self.0.waiters[cpu.index()]
    }

    fn pause(&self, _turns: u32) -> u32 {
        loom::thread::yield_now();
        1
    }
}

fn use_once<const CPUS: usize, const TURNS: u32>(world: &World<CPUS>, cpu: u32) {
    if !world.lock.try_lock() {
        world.lock.wait(&Cpu::<CPUS, TURNS>(world, cpu));
    }
    let before = world.uses.load(Ordering::Relaxed);
    world.uses.store(before + 1, Ordering::Relaxed);
    world.lock.unlock();
}

impl<const CPUS: usize> World<CPUS> {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            lock: RawLock::default(),
            waiters: std::array::from_fn(|_| Waiter::default()),
            uses: AtomicU64::new(0),
        })
    }
}

fn explore(cpus: usize, scene: impl Fn() + Sync + Send + 'static) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(preemptions_max(cpus));
    model.check(scene);
}

/// Each of `CPUS` takes the lock `times` times, in all orders.
fn all_get_it<const CPUS: usize, const TURNS: u32>(times: u32) {
    explore(CPUS, move || {
        let world = World::<CPUS>::new();
        let part = |cpu: u32| {
            let world = world.clone();
            move || (0..times).for_each(|_| use_once::<CPUS, TURNS>(&world, cpu))
        };
        let others: Vec<_> = (1..CPUS as u32)
            .map(|cpu| loom::thread::spawn(part(cpu)))
            .collect();
        part(0)();
        for other in others {
            assert!(other.join().is_ok(), "the other CPU had the lock");
        }
        let uses = world.uses.load(Ordering::Relaxed);
        assert_eq!(uses, u64::from(times) * CPUS as u64, "no use was lost");
        assert!(!world.lock.is_locked() && world.lock.try_lock());
    });
}

#[test]
fn two_cpus_take_turns_when_the_first_reserves_at_once() {
    all_get_it::<2, 0>(2);
}

#[test]
fn two_cpus_take_turns_when_the_first_is_overtaken() {
    all_get_it::<2, 100>(2);
}

#[test]
fn three_cpus_queue_and_all_get_the_lock() {
    all_get_it::<3, 0>(1);
}

#[test]
fn three_cpus_queue_behind_a_patient_first_one() {
    all_get_it::<3, 1>(1);
}

/// CPU 0 queues with CPU 1 behind it, and again with CPU 2 behind it. It may not take the one of
/// the first time for the other, who would wait for ever.
#[test]
fn a_cpu_that_queues_again_hands_over_to_who_stands_behind_it_now() {
    explore(3, || {
        let world = World::<3>::new();
        assert!(world.lock.try_lock());
        let part = |cpu: u32, times: u32| {
            let world = world.clone();
            move || {
                for _ in 0..times {
                    world.lock.wait(&Cpu::<3, 0>(&world, cpu));
                    world.lock.unlock();
                }
            }
        };
        let twice = loom::thread::spawn(part(0, 2));
        let once = loom::thread::spawn(part(1, 1));
        world.lock.unlock();
        assert!(once.join().is_ok(), "CPU 1 had the lock");
        part(2, 1)();
        assert!(twice.join().is_ok(), "CPU 0 had the lock");
    });
}
