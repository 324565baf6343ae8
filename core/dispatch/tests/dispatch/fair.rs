//! Threads that share fairly: who runs next, and when one makes way.

use crate::world::{MS, Task, World, set};
use base::{CpuId, Duration};
use dispatch::{Arrival, Policy, SLICE};

fn world() -> World {
    World::new(1)
}

/// A thread that ran for so many milliseconds.
fn ran(name: u32, millis: u64) -> std::sync::Arc<Task> {
    let task = Task::on(0, name);
    task.charge(millis * MS);
    task
}

#[test]
fn the_thread_that_had_least_runs_next() {
    let world = world();
    for (name, millis) in [(1, 30), (2, 10), (3, 20)] {
        world.put(0, &ran(name, millis));
    }
    assert_eq!([0; 3].map(|cpu| world.next(cpu)), [2, 3, 1]);
    assert_eq!(world.next(0), 0);
}

#[test]
fn equals_run_in_the_order_in_which_they_came() {
    let world = world();
    (1..=3).for_each(|name| world.put(0, &ran(name, 5)));
    assert_eq!([0; 3].map(|cpu| world.next(cpu)), [1, 2, 3]);
}

#[test]
fn a_sleeper_comes_back_with_three_milliseconds_of_credit() {
    let world = world();
    world.put(0, &ran(1, 100));
    assert_eq!(world.next(0), 1);
    let sleeper = ran(2, 10);
    world.put(0, &sleeper);
    assert_eq!(sleeper.vruntime_ns(), ran(0, 100).vruntime_ns() - 3 * MS);
}

#[test]
fn a_thread_keeps_what_it_had_within_the_credit() {
    let world = world();
    world.put(0, &ran(1, 100));
    assert_eq!(world.next(0), 1);
    let (before, task) = (ran(0, 99).vruntime_ns(), ran(2, 99));
    world.put(0, &task);
    assert_eq!(task.vruntime_ns(), before);
}

#[test]
fn a_thread_from_elsewhere_comes_with_a_bounded_debt() {
    let world = world();
    world.put(0, &ran(1, 100));
    assert_eq!(world.next(0), 1);
    let other = ran(2, 100_000);
    world.put(0, &other);
    assert_eq!(other.vruntime_ns(), ran(0, 100).vruntime_ns() + 300 * MS);
}

#[test]
fn the_least_weight_keeps_the_debt_of_a_slice() {
    let (world, least) = (world(), Task::on(0, 1));
    least.set_nice(19);
    least.charge(SLICE.as_nanos());
    let before = least.vruntime_ns();
    world.put(0, &least);
    assert_eq!(least.vruntime_ns(), before);
}

#[test]
fn the_floor_never_sinks() {
    let world = world();
    world.put(0, &ran(1, 100));
    assert_eq!(world.next(0), 1);
    // This one has credit, and is below the floor.
    world.put(0, &ran(2, 98));
    assert_eq!(world.next(0), 2);
    let sleeper = ran(3, 0);
    world.put(0, &sleeper);
    assert_eq!(sleeper.vruntime_ns(), ran(0, 100).vruntime_ns() - 3 * MS);
}

#[test]
fn each_step_of_nice_is_a_quarter_more_virtual_time() {
    let used = |nice| {
        let task = Task::on(0, 1);
        task.set_nice(nice);
        task.charge(1024 * MS);
        task.vruntime_ns()
    };
    assert_eq!(used(0), 1024 * MS);
    assert_eq!(used(1), 1280 * MS);
    assert_eq!(used(-1), 819 * MS);
    for nice in -20..19 {
        let ratio = used(nice + 1) as f64 / used(nice) as f64;
        assert!((1.15..1.35).contains(&ratio), "nice {nice}: {ratio}");
    }
    assert_eq!(used(100), used(19), "it is brought into its limits");
    assert_eq!(used(-100), used(-20));
}

#[test]
fn an_idle_policy_has_a_three_hundredth_whatever_its_nice_value() {
    let task = Task::with_policy(0, 1, Policy::Idle);
    task.set_nice(-20);
    task.charge(1024 * MS);
    assert_eq!(task.vruntime_ns(), 1024 * 1024 / 3 * MS);
    let batch = Task::with_policy(0, 1, Policy::Batch);
    batch.charge(1024 * MS);
    assert_eq!(batch.vruntime_ns(), 1024 * MS);
}

#[test]
fn one_that_woke_runs_at_once_if_it_is_clearly_behind() {
    let preempts = |ahead_us: u64| {
        let (world, running) = (world(), ran(1, 10));
        running.charge(ahead_us * 1024);
        let woken = ran(2, 10);
        let arrival = world.dispatcher.enqueue(woken, &running, world.at(0));
        arrival == Arrival::Here { preempts: true }
    };
    assert!(!preempts(0));
    assert!(!preempts(976), "a millisecond is not enough");
    assert!(preempts(977));
}

#[test]
fn one_that_woke_waits_if_it_is_behind_by_exactly_a_millisecond() {
    let world = world();
    let running = Task::on(0, 1);
    running.set_nice(3);
    // Nice 3 counts 2000 for 1024 nanoseconds.
    running.charge(500 * 1024);
    assert_eq!(running.vruntime_ns(), MS);
    let arrival = world
        .dispatcher
        .enqueue(Task::on(0, 2), &running, world.at(0));
    assert_eq!(arrival, Arrival::Here { preempts: false });
}

#[test]
fn a_cpu_sees_arrivals_from_elsewhere() {
    let (world, running) = (world(), ran(1, 10));
    assert_eq!(
        world.dispatcher.look_for_arrivals(&running, world.at(0)),
        None
    );
    world.put(0, &ran(2, 10));
    let seen = || world.dispatcher.look_for_arrivals(&running, world.at(0));
    assert_eq!(seen(), Some(false));
    world.put(0, &ran(3, 2));
    assert_eq!(seen(), Some(true));
}

#[test]
fn a_slice_ends_only_where_others_wait() {
    let (world, running) = (world(), ran(1, 10));
    let is_over = |used| world.dispatcher.is_turn_over(&running, used, world.at(0));
    assert!(!is_over(Duration::from_secs(1)));
    world.put(0, &ran(2, 10));
    assert!(!is_over(Duration::from_nanos(SLICE.as_nanos() - 1)));
    assert!(is_over(SLICE));
    world.put(0, &ran(3, 2));
    assert!(is_over(Duration::ZERO), "one is clearly behind");
}

#[test]
fn one_that_yields_makes_way_for_whoever_waits() {
    let (world, running) = (world(), ran(1, 1));
    let instead = || {
        let next = world.dispatcher.next_instead_of(&running, world.at(0));
        next.map(|task| task.name)
    };
    assert_eq!(instead(), None);
    world.put(0, &ran(2, 10));
    assert_eq!(instead(), Some(2));
}

#[test]
fn a_child_starts_like_its_maker() {
    let (maker, child) = (ran(1, 10), Task::on(0, 2));
    maker.set_policy(Policy::Batch, false);
    maker.set_nice(-5);
    maker.set_affinity(set(&[0, 1]));
    child.inherit(&maker);
    assert_eq!(child.class.policy(), Policy::Batch);
    assert_eq!((child.nice(), child.affinity()), (-5, set(&[0, 1])));
    assert_eq!(child.vruntime_ns(), maker.vruntime_ns());
}

#[test]
fn a_child_starts_without_what_only_its_maker_may() {
    let born = |policy, nice| {
        let (maker, child) = (Task::on(0, 1), Task::on(0, 2));
        maker.set_policy(policy, true);
        maker.set_nice(nice);
        child.inherit(&maker);
        assert!(!child.class.resets_on_fork());
        (child.class.policy(), child.nice())
    };
    assert_eq!(born(Policy::Fifo(5), -5), (Policy::Normal, 0));
    assert_eq!(born(Policy::Batch, -5), (Policy::Batch, 0));
    assert_eq!(born(Policy::Batch, 5), (Policy::Batch, 5));
}

#[test]
fn a_thread_notices_that_it_moved() {
    let task = Task::on(0, 1);
    assert!(!task.move_to(CpuId(0)));
    assert!(task.move_to(CpuId(3)));
    assert_eq!(task.last_cpu(), CpuId(3));
}
