//! Threads with a real-time policy: they go first, by priority, in turns, within a bound.

use std::sync::Arc;

use crate::world::{MS, Task, World, set};
use base::{CpuId, Duration, Instant};
use dispatch::{Arrival, Budget, Limits, Policy, ROUND, Rank, RunQueue};

fn world() -> World {
    World::new(1)
}

fn fifo(name: u32, priority: u8) -> Arc<Task> {
    Task::with_policy(0, name, Policy::Fifo(priority))
}

fn robin(name: u32, priority: u8) -> Arc<Task> {
    Task::with_policy(0, name, Policy::RoundRobin(priority))
}

fn order<const N: usize>(world: &World) -> [u32; N] {
    [0; N].map(|cpu| world.next(cpu))
}

#[test]
fn real_time_threads_go_before_all_others_by_priority() {
    let world = world();
    world.put(0, &Task::on(0, 1));
    world.put(0, &fifo(2, 10));
    world.put(0, &robin(3, 99));
    world.put(0, &fifo(4, 50));
    assert_eq!(order(&world), [3, 4, 2, 1]);
}

#[test]
fn equals_run_in_the_order_in_which_they_came() {
    let world = world();
    (1..=3).for_each(|name| world.put(0, &fifo(name, 10)));
    assert_eq!(order(&world), [1, 2, 3]);
}

#[test]
fn virtual_run_time_does_not_matter_to_them() {
    let (world, first) = (world(), Task::on(0, 1));
    first.charge(500 * MS);
    first.set_policy(Policy::Fifo(10), false);
    let before = first.vruntime_ns();
    world.put(0, &first);
    world.put(0, &fifo(2, 10));
    assert_eq!(order(&world), [1, 2]);
    first.charge(MS);
    assert_eq!(first.vruntime_ns(), before, "it stands still meanwhile");
}

#[test]
fn one_that_made_way_for_a_better_one_stands_in_front_of_its_equals() {
    let (world, running) = (world(), fifo(1, 10));
    world.put(0, &fifo(2, 10));
    running.class.make_way(Duration::ZERO);
    world.put(0, &running);
    assert_eq!(order(&world), [1, 2]);
    world.put(0, &fifo(2, 10));
    world.put(0, &running);
    assert_eq!(order(&world), [2, 1], "once");
}

#[test]
fn one_that_found_nobody_to_make_way_for_does_not_stand_in_front_later() {
    let (world, running) = (world(), fifo(1, 10));
    running.class.make_way(Duration::ZERO);
    running.class.forget_place();
    world.put(0, &fifo(2, 10));
    world.put(0, &running);
    assert_eq!(order(&world), [2, 1]);
}

#[test]
fn a_round_ends_after_its_time_over_several_switches() {
    let (world, running) = (world(), robin(1, 10));
    world.put(0, &robin(2, 10));
    let is_over = |used| world.dispatcher.is_turn_over(&running, used, world.at(0));
    let rest = Duration::from_nanos(ROUND.as_nanos() - 30 * MS);
    running.charge(30 * MS);
    assert!(!is_over(Duration::from_nanos(rest.as_nanos() - 1)));
    assert!(is_over(rest));
    running.class.make_way(rest);
    world.put(0, &running);
    assert_eq!(order(&world), [2, 1], "behind its equals");
    assert!(!running.class.is_round_over(rest), "a new round has begun");
}

#[test]
fn one_within_its_round_makes_way_only_in_front_of_its_equals() {
    let (world, running) = (world(), robin(1, 10));
    world.put(0, &robin(2, 10));
    running.class.make_way(Duration::from_millis(99));
    world.put(0, &running);
    assert_eq!(order(&world), [1, 2]);
}

#[test]
fn another_priority_begins_a_new_round() {
    let running = robin(1, 10);
    running.charge(60 * MS);
    assert!(running.class.is_round_over(Duration::from_millis(40)));
    running.set_policy(Policy::RoundRobin(20), false);
    assert!(!running.class.is_round_over(Duration::from_millis(40)));
}

#[test]
fn a_thread_that_moved_on_is_not_taken_for_who_stands_there() {
    let (mut here, mut there) = (RunQueue::new(), RunQueue::new());
    let (stays, moved) = (fifo(1, 10), fifo(2, 10));
    here.push(stays.clone(), CpuId(0));
    there.push(moved.clone(), CpuId(1));
    assert!(here.remove(&moved).is_none(), "whoever has its place there");
    assert!(here.remove(&stays).is_some());
    assert!(there.remove(&moved).is_some());
}

#[test]
fn first_in_first_out_knows_no_rounds() {
    let (world, running) = (world(), fifo(1, 10));
    world.put(0, &fifo(2, 10));
    running.charge(10 * ROUND.as_nanos());
    let is_over = world.dispatcher.is_turn_over(&running, ROUND, world.at(0));
    assert!(!is_over);
    running.set_policy(Policy::RoundRobin(10), false);
    assert!(
        !running.class.is_round_over(Duration::ZERO),
        "it begins anew"
    );
}

#[test]
fn a_fair_thread_that_makes_way_keeps_no_place() {
    let (world, running) = (world(), Task::on(0, 1));
    running.class.make_way(Duration::ZERO);
    running.set_policy(Policy::Fifo(10), false);
    world.put(0, &fifo(2, 10));
    world.put(0, &running);
    assert_eq!(order(&world), [2, 1]);
}

#[test]
fn a_better_one_runs_at_once_an_equal_one_does_not() {
    let preempts = |running: &Task, woken: Arc<Task>| {
        let world = world();
        let arrival = world.dispatcher.enqueue(woken, running, world.at(0));
        arrival == Arrival::Here { preempts: true }
    };
    assert!(preempts(&Task::on(0, 1), fifo(2, 1)));
    assert!(preempts(&fifo(1, 10), fifo(2, 11)));
    assert!(!preempts(&fifo(1, 10), fifo(2, 10)));
    assert!(!preempts(&fifo(1, 10), fifo(2, 9)));
    assert!(!preempts(&fifo(1, 10), Task::on(0, 2)));
}

#[test]
fn a_better_one_runs_at_once_though_others_wait_as_well() {
    let (world, running) = (world(), Task::on(0, 1));
    world.put(0, &Task::on(0, 2));
    let arrival = world.dispatcher.enqueue(fifo(3, 1), &running, world.at(0));
    assert_eq!(arrival, Arrival::Here { preempts: true });
    let seen = world.dispatcher.look_for_arrivals(&running, world.at(0));
    assert_eq!(seen, Some(true), "nor does it matter who put it there");
}

#[test]
fn where_the_part_of_real_time_is_spent_they_disturb_no_others() {
    let (world, fair) = (world(), Task::on(0, 1));
    world.cpus.is_spent.set(true);
    let arrival = world.dispatcher.enqueue(fifo(2, 10), &fair, world.at(0));
    assert_eq!(arrival, Arrival::Here { preempts: false });
    world.put(0, &fair);
    assert_eq!(order(&world), [1, 2]);
}

#[test]
fn among_themselves_rank_counts_though_their_part_is_spent() {
    let world = world();
    world.cpus.is_spent.set(true);
    let arrival = world
        .dispatcher
        .enqueue(fifo(2, 11), &fifo(1, 10), world.at(0));
    assert_eq!(arrival, Arrival::Here { preempts: true });
}

#[test]
fn a_real_time_thread_has_the_cpu_for_long_only_while_its_part_is_not_spent() {
    let (world, running) = (world(), fifo(1, 10));
    let is_over = || {
        let used = Duration::from_secs(9);
        world.dispatcher.is_turn_over(&running, used, world.at(0))
    };
    world.cpus.is_spent.set(true);
    assert!(!is_over(), "nobody waits");
    world.put(0, &Task::on(0, 2));
    assert!(is_over());
    world.cpus.is_spent.set(false);
    assert!(!is_over());
}

#[test]
fn one_that_yields_makes_way_for_its_equals_and_better_ones_only() {
    let (world, running) = (world(), fifo(1, 10));
    let instead = || {
        let next = world.dispatcher.next_instead_of(&running, world.at(0));
        next.map(|task| task.name)
    };
    world.put(0, &Task::on(0, 2));
    world.put(0, &fifo(3, 9));
    assert_eq!(instead(), None);
    world.put(0, &fifo(4, 10));
    assert_eq!(instead(), Some(4));
    world.cpus.is_spent.set(true);
    assert_eq!(instead(), Some(2), "their part is spent");
}

#[test]
fn a_lent_rank_counts_until_it_is_taken_back() {
    let (world, task) = (world(), fifo(1, 10));
    assert!(task.class.lend(fifo(2, 50).rank()));
    assert!(!task.class.lend(fifo(2, 50).rank()), "it has that already");
    world.put(0, &fifo(3, 40));
    world.put(0, &task);
    assert_eq!(order(&world), [1, 3]);
    assert!(!task.class.lend(fifo(2, 5).rank()) || task.rank() == fifo(2, 10).rank());
    assert!(!task.class.lend(Rank::FAIR), "its own rank is better");
    assert_eq!(task.rank(), fifo(2, 10).rank());
}

#[test]
fn one_that_sinks_goes_before_its_new_equals_one_that_rises_behind_them() {
    let (world, sinks, rises) = (world(), fifo(1, 20), fifo(2, 5));
    world.put(0, &fifo(3, 10));
    for task in [&sinks, &rises] {
        assert!(task.set_policy(Policy::Fifo(10), false));
        assert!(!task.set_policy(Policy::Fifo(10), false), "nothing changes");
        world.put(0, task);
    }
    assert_eq!(order(&world), [1, 3, 2]);
}

#[test]
fn one_that_only_begins_to_take_turns_goes_behind_its_equals() {
    let (world, task) = (world(), fifo(1, 10));
    world.put(0, &fifo(2, 10));
    assert!(task.set_policy(Policy::RoundRobin(10), false));
    world.put(0, &task);
    assert_eq!(order(&world), [2, 1]);
}

#[test]
fn a_waiting_thread_whose_rank_changes_is_taken_out_once() {
    let (world, task) = (world(), fifo(1, 10));
    assert!(world.dispatcher.take_out(&task).is_none());
    world.put(0, &task);
    world.put(0, &fifo(2, 10));
    let fair = Task::on(0, 3);
    fair.charge(7 * MS);
    world.put(0, &fair);
    task.set_policy(Policy::Fifo(5), false);
    let name = |task: &Task| {
        let taken = world.dispatcher.take_out(task);
        taken.map(|task| task.name)
    };
    assert_eq!((name(&task), name(&task)), (Some(1), None));
    assert_eq!(name(&fair), Some(3));
    assert_eq!(order(&world), [2, 0]);
}

#[test]
fn a_thread_of_the_best_priority_is_found_where_it_waits_for_the_first_cpu() {
    let (world, task) = (world(), fifo(1, 99));
    world.put(0, &task);
    assert!(task.place().is_some());
    task.set_policy(Policy::Normal, false);
    assert!(world.dispatcher.take_out(&task).is_some());
    world.put(0, &task);
    world.put(0, &fifo(2, 1));
    assert_eq!(order(&world), [2, 1], "its new policy counts");
}

#[test]
fn real_time_threads_that_left_are_no_longer_looked_for() {
    let world: World = World::new(2);
    world.put(1, &fifo(1, 10));
    world.put(1, &Task::on(1, 2));
    world.put(0, &Task::on(0, 3));
    assert_eq!(world.next(0), 1, "a better one of a neighbour's");
    assert_eq!(world.next(0), 3);
}

#[test]
fn a_cpu_takes_the_best_of_all_neighbours() {
    let world: World = World::new(4);
    world.put(0, &fifo(1, 10));
    world.put(1, &fifo(2, 20));
    world.put(2, &fifo(3, 30));
    assert_eq!([0; 3].map(|cpu| world.next(cpu)), [3, 2, 1]);
}

#[test]
fn a_cpu_prefers_its_own_among_equals() {
    let world: World = World::new(2);
    world.put(0, &fifo(1, 10));
    world.put(1, &fifo(2, 10));
    assert_eq!(world.next(0), 1);
}

#[test]
fn a_better_one_that_may_not_run_here_is_left() {
    let world: World = World::new(2);
    let bound = fifo(1, 30);
    world.put(1, &bound);
    bound.set_affinity(set(&[1]));
    world.put(1, &fifo(2, 20));
    world.put(0, &fifo(3, 10));
    assert_eq!([0; 2].map(|cpu| world.next(cpu)), [2, 3]);
    assert_eq!(world.next(0), 0);
}

#[test]
fn a_cpu_whose_part_is_spent_takes_none_of_its_neighbours() {
    let world: World = World::new(2);
    world.put(1, &fifo(1, 30));
    world.put(0, &Task::on(0, 2));
    world.cpus.is_spent.set(true);
    assert_eq!(world.next(0), 2);
    assert_eq!(world.next(0), 1, "but for want of others");
}

#[test]
fn what_runs_is_known_by_its_rank() {
    let world: World = World::new(2);
    world.dispatcher.note_running(CpuId(0), &fifo(1, 50));
    let other = Task::with_policy(0, 2, Policy::Fifo(60));
    assert_eq!(world.dispatcher.choose(&other, world.at(0)), CpuId(1));
    world.dispatcher.note_running(CpuId(0), &Task::on(0, 3));
    assert_eq!(world.dispatcher.choose(&other, world.at(0)), CpuId(0));
}

fn at(millis: u64) -> Instant {
    Instant::from_millis(millis)
}

const LIMITS: Limits = Limits {
    period: Duration::from_millis(1000),
    runtime: Some(Duration::from_millis(950)),
};

#[test]
fn a_budget_counts_what_real_time_threads_had_since_they_began() {
    let mut budget = Budget::new();
    budget.begin(at(10));
    budget.count(at(500));
    budget.begin(at(510));
    budget.count(at(969));
    assert!(!budget.is_spent(at(970), LIMITS));
    budget.count(at(970));
    assert!(budget.is_spent(at(970), LIMITS), "no time is counted twice");
    let mut budget = Budget::new();
    budget.begin(at(0));
    (1..=949).for_each(|millis| budget.count(at(millis)));
    assert!(!budget.is_spent(at(949), LIMITS));
}

#[test]
fn a_budget_is_there_again_in_the_next_period() {
    let mut budget = Budget::new();
    budget.begin(at(0));
    budget.count(at(950));
    assert!(budget.is_spent(at(999), LIMITS));
    assert!(!budget.is_spent(at(1000), LIMITS));
    budget.begin(at(1000));
    budget.count(at(1950));
    assert!(
        budget.is_spent(at(1999), LIMITS),
        "its period began at 1000"
    );
}

#[test]
fn a_budget_without_a_limit_is_never_spent_and_one_of_nothing_always() {
    let mut budget = Budget::new();
    budget.begin(at(0));
    budget.count(at(999));
    let limits = |runtime| Limits { runtime, ..LIMITS };
    assert!(!budget.is_spent(at(999), limits(None)));
    assert!(budget.is_spent(at(999), limits(Some(Duration::ZERO))));
    assert!(Budget::new().is_spent(at(0), limits(Some(Duration::ZERO))));
}

#[test]
fn what_was_used_without_a_wait_is_counted_until_the_next() {
    let task = fifo(1, 10);
    task.since_wait.count(1500 * 1000);
    task.since_wait.count(500 * 1000);
    assert_eq!(task.since_wait.micros(), 2000);
    task.since_wait.reset();
    assert_eq!(task.since_wait.micros(), 0);
}

#[test]
fn policies_survive_being_stored() {
    let all = [
        Policy::Normal,
        Policy::Batch,
        Policy::Idle,
        Policy::Fifo(1),
        Policy::Fifo(99),
        Policy::RoundRobin(1),
        Policy::RoundRobin(99),
    ];
    for policy in all {
        let task = Task::with_policy(0, 1, policy);
        assert_eq!(task.class.policy(), policy);
        assert_eq!(task.rank().is_realtime(), policy.is_realtime());
    }
    assert!(
        all.map(Policy::number)
            .is_sorted_by_key(|number| match number {
                0 => 0,
                3 => 1,
                5 => 2,
                1 => 3,
                _ => 4,
            })
    );
}
