//! `loom` runs the shared lock's own code with two and three CPUs in all orders that matter: nobody
//! looks while somebody writes, each sees what the writer before it wrote, and all get it.
//!
//! The data is a cell that loom watches; nobody reads or writes it for real.

#![forbid(unsafe_code)]

mod watched;

use std::array::from_fn;

use base::CpuId;
use loom::cell::UnsafeCell;
use loom::sync::Arc;
use spinlock::{Family, Machine, Native, One, PerCpu, RawShared, Slots, Waiter};
use watched::Watched;

const CPUS: usize = 3;

type OneSlot = One<<Watched as Family>::Counter>;
type Slot = PerCpu<<Watched as Family>::Counter, 2>;

#[derive(Clone, Copy, PartialEq)]
enum Part {
    Reads,
    Writes,
}
use Part::{Reads, Writes};

struct World<S> {
    lock: RawShared<Watched, S>,
    waiters: [Waiter<Watched>; CPUS],
    data: UnsafeCell<u8>,
}

struct Cpu<'a, S>(&'a World<S>, u32);

impl<S> Machine<Watched> for Cpu<'_, S> {
    const TURNS_UNTIL_RESERVED: u32 = 0;

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

fn play<S: Slots<Watched>>(world: &World<S>, cpu: u32, part: Part) {
    let machine = Cpu(world, cpu);
    match part {
        Reads => {
            if !world.lock.try_read(|| CpuId(cpu)) {
                world.lock.wait_to_read(&machine);
            }
            world.data.with(|_| ());
            world.lock.end_read(|| CpuId(cpu));
        }
        Writes => {
            world.lock.write(&machine);
            world.data.with_mut(|_| ());
            world.lock.end_write();
        }
    }
}

/// Each CPU plays its parts, in all orders.
fn all_get_it<S>(parts: &'static [&'static [Part]], preemptions_max: usize)
where
    S: Slots<Watched> + Default + Send + Sync + 'static,
{
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(preemptions_max);
    model.check(move || {
        let world = Arc::new(World::<S> {
            lock: RawShared::default(),
            waiters: from_fn(|_| Waiter::default()),
            data: UnsafeCell::new(0),
        });
        let of = |cpu: usize| {
            let world = world.clone();
            move || {
                for part in parts[cpu] {
                    play(&world, cpu as u32, *part);
                }
            }
        };
        let others: Vec<_> = (1..parts.len())
            .map(|cpu| loom::thread::spawn(of(cpu)))
            .collect();
        of(0)();
        for other in others {
            assert!(other.join().is_ok(), "the other CPU had the lock");
        }
        play(&world, 0, Writes);
    });
}

#[test]
fn a_reader_and_a_writer_take_turns() {
    all_get_it::<OneSlot>(&[&[Reads, Reads], &[Writes, Writes]], 3);
}

#[test]
fn a_reader_and_a_writer_change_parts() {
    all_get_it::<OneSlot>(&[&[Reads, Writes], &[Reads, Writes]], 3);
}

#[test]
fn two_readers_and_a_writer_all_get_it() {
    all_get_it::<OneSlot>(&[&[Reads], &[Reads], &[Writes]], 1);
}

#[test]
fn two_writers_and_a_reader_all_get_it() {
    all_get_it::<OneSlot>(&[&[Writes], &[Writes], &[Reads]], 1);
}

#[test]
fn readers_in_slots_of_their_own_and_a_writer_take_turns() {
    all_get_it::<Slot>(&[&[Reads, Writes], &[Reads, Writes]], 3);
}

fn readers_share<S: Slots<Native>>(lock: &RawShared<Native, S>) {
    assert!(lock.try_read(|| CpuId(0)), "nobody writes");
    assert!(lock.try_read(|| CpuId(1)), "another only reads");
    assert!(!lock.is_written(), "both only read");
}

#[test]
fn readers_do_not_wait_for_each_other() {
    readers_share(&RawShared::new(One::new()));
    readers_share(&RawShared::new(PerCpu::<_, 2>::new()));
}
