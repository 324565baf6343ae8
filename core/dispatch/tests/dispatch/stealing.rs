//! What CPUs take of each other's.

use crate::world::{MS, Task, World, set};
use base::CpuId;

/// Puts a thread that ran for so many milliseconds on the queue of `cpu`.
fn put(world: &World, cpu: u32, name: u32, millis: u64) {
    let task = Task::on(cpu, name);
    task.charge(millis * MS);
    world.put(cpu, &task);
}

#[test]
fn a_cpu_runs_its_own_threads_first() {
    let world = World::new(8);
    put(&world, 1, 1, 0);
    put(&world, 0, 2, 50);
    assert_eq!(world.next(0), 2);
    assert_eq!(world.next(0), 1);
}

#[test]
fn a_cpu_steals_from_near_ones_first() {
    let world = World::new(8);
    put(&world, 4, 4, 0);
    put(&world, 1, 1, 0);
    put(&world, 7, 7, 0);
    put(&world, 3, 3, 0);
    assert_eq!([5; 2].map(|cpu| world.next(cpu)), [7, 4]);
    assert_eq!([2; 2].map(|cpu| world.next(cpu)), [3, 1]);
}

#[test]
fn a_cpu_steals_from_far_ones_if_no_near_one_has_any() {
    let world = World::new(8);
    put(&world, 6, 6, 0);
    assert_eq!(world.next(1), 6);
    assert_eq!(world.next(1), 0);
}

#[test]
fn neighbours_begin_at_different_victims() {
    let world = World::new(4);
    (0..4).for_each(|cpu| put(&world, cpu, 10 + cpu, 0));
    put(&world, 0, 1, 50);
    put(&world, 1, 2, 50);
    for cpu in 0..4 {
        assert_eq!(world.next(cpu), 10 + cpu);
    }
    assert_eq!(world.next(3), 1);
    assert_eq!(world.next(0), 2);
}

#[test]
fn the_thread_that_would_wait_longest_is_stolen() {
    let world = World::new(2);
    for (name, millis) in [(1, 5), (2, 40), (3, 20)] {
        put(&world, 1, name, millis);
    }
    assert_eq!(world.next(0), 2);
}

#[test]
fn threads_that_may_not_run_here_are_left() {
    let world = World::new(2);
    let bound = Task::on(1, 1);
    bound.charge(90 * MS);
    world.put(1, &bound);
    bound.set_affinity(set(&[1]));
    put(&world, 1, 2, 5);
    assert_eq!(world.next(0), 2);
    assert_eq!(world.next(0), 0);
    assert_eq!(world.next(1), 1);
}

/// How many wait on the CPUs.
fn ready<const N: usize>(world: &World) -> [usize; N] {
    std::array::from_fn(|cpu| world.dispatcher.ready(CpuId(cpu as u32)))
}

fn fill(world: &World, lengths: &[usize]) {
    for (cpu, length) in lengths.iter().enumerate() {
        (0..*length).for_each(|at| put(world, cpu as u32, 1, at as u64));
    }
}

#[test]
fn a_busy_cpu_takes_from_a_queue_that_is_longer_by_two() {
    let world = World::new(2);
    fill(&world, &[0, 1]);
    assert!(
        !world.dispatcher.balance(world.at(0)),
        "by one is not enough"
    );
    assert_eq!(ready(&world), [0, 1]);
    fill(&world, &[0, 1]);
    assert!(world.dispatcher.balance(world.at(0)));
    assert_eq!(ready(&world), [1, 1]);
    assert!(!world.dispatcher.balance(world.at(0)));
}

#[test]
fn a_busy_cpu_takes_from_the_longest_queue() {
    let world = World::new(4);
    fill(&world, &[1, 3, 5, 4]);
    assert!(world.dispatcher.balance(world.at(0)));
    assert_eq!(ready(&world), [2, 3, 4, 4]);
}

#[test]
fn a_busy_cpu_takes_from_far_ones_only_if_no_near_queue_is_too_long() {
    let world = World::new(8);
    fill(&world, &[0, 2, 1, 0, 0, 9, 0, 0]);
    assert!(world.dispatcher.balance(world.at(0)));
    assert_eq!(ready(&world), [1, 1, 1, 0, 0, 9, 0, 0]);
    assert!(world.dispatcher.balance(world.at(0)));
    assert_eq!(ready(&world), [2, 1, 1, 0, 0, 8, 0, 0]);
}

#[test]
fn balance_takes_nobody_who_may_not_come() {
    let world: World = World::new(2);
    for name in 1..=3 {
        let bound = Task::on(1, name);
        world.put(1, &bound);
        bound.set_affinity(set(&[1]));
    }
    assert!(!world.dispatcher.balance(world.at(0)));
    assert_eq!(ready(&world), [0, 3]);
}

#[test]
fn a_thread_that_was_taken_keeps_to_the_time_of_its_new_queue() {
    let world = World::new(2);
    put(&world, 0, 9, 200);
    assert_eq!(world.next(0), 9);
    fill(&world, &[0, 3]);
    assert!(world.dispatcher.balance(world.at(0)));
    let taken = world.dispatcher.next(world.at(0)).expect("it was taken");
    let floor = Task::on(0, 0);
    floor.charge(200 * MS);
    assert_eq!(taken.vruntime_ns(), floor.vruntime_ns() - 3 * MS);
    assert_eq!(taken.place(), None);
}

#[test]
fn a_thread_that_may_run_nowhere_else_is_not_looked_for() {
    let world: World = World::new(4);
    let task = Task::on(0, 1);
    task.set_affinity(set(&[0]));
    let _ = world.enqueue(0, &task);
    let looked_at = |cpu| {
        [
            world.dispatcher.ready(CpuId(cpu)),
            world.dispatcher.movable(CpuId(cpu)),
        ]
    };
    assert_eq!(looked_at(0), [1, 0]);
    assert_eq!(world.next(1), 0);
    world.dispatcher.set_affinity(&task, set(&[0, 1]));
    assert_eq!(looked_at(0), [1, 1], "it may leave from now on");
    assert_eq!(world.next(2), 0);
    assert!(
        !world.dispatcher.was_refused(CpuId(2)),
        "it looked, and may not have it"
    );
    assert_eq!(world.next(1), 1);
    assert_eq!(looked_at(0), [0, 0]);
}

#[test]
fn a_busy_cpu_passes_over_a_long_queue_of_threads_that_stay() {
    let world = World::new(4);
    fill(&world, &[0, 0, 3, 0]);
    for name in 1..=5 {
        let stays = Task::on(1, name);
        stays.set_affinity(set(&[1]));
        let _ = world.enqueue(1, &stays);
    }
    assert!(world.dispatcher.balance(world.at(0)));
    assert_eq!(ready(&world), [1, 5, 2, 0]);
}
