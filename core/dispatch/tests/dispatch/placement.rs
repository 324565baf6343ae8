//! Which CPU a thread goes to.

use crate::world::{Task, World, set};
use base::CpuId;
use dispatch::{Arrival, Policy};

fn world() -> World {
    World::new(8)
}

#[test]
fn a_thread_goes_to_its_last_cpu_if_that_idles() {
    let world = world();
    world.idle(&[1, 2, 3]);
    assert_eq!(
        world.enqueue(0, &Task::on(2, 1)),
        Arrival::Elsewhere(CpuId(2))
    );
}

#[test]
fn a_thread_goes_to_a_near_idle_cpu_if_its_last_one_works() {
    let world = world();
    world.idle(&[1, 6]);
    assert_eq!(
        world.enqueue(0, &Task::on(5, 1)),
        Arrival::Elsewhere(CpuId(6))
    );
    assert_eq!(
        world.enqueue(0, &Task::on(2, 2)),
        Arrival::Elsewhere(CpuId(1))
    );
}

#[test]
fn a_thread_goes_to_a_far_idle_cpu_if_no_near_one_idles() {
    let world = world();
    world.idle(&[6, 7]);
    assert_eq!(
        world.enqueue(0, &Task::on(1, 1)),
        Arrival::Elsewhere(CpuId(6))
    );
}

#[test]
fn threads_that_wake_together_go_to_different_idle_cpus() {
    let world = world();
    world.idle(&[1, 2, 7]);
    let cpus = [1, 2, 3, 4].map(|name| match world.enqueue(0, &Task::on(3, name)) {
        Arrival::Elsewhere(cpu) => cpu.0,
        arrival => panic!("{arrival:?}"),
    });
    assert_eq!(cpus, [1, 2, 7, 3]);
}

#[test]
fn a_cpu_that_idles_again_is_sent_a_thread_again() {
    let world = world();
    for name in 1..3 {
        world.idle(&[2]);
        let arrival = world.enqueue(0, &Task::on(3, name));
        assert_eq!(arrival, Arrival::Elsewhere(CpuId(2)));
        world.dispatcher.announce_busy(CpuId(2));
    }
}

#[test]
fn a_thread_stays_on_its_last_cpu_if_none_idles() {
    let world = world();
    assert_eq!(
        world.enqueue(0, &Task::on(3, 1)),
        Arrival::Elsewhere(CpuId(3))
    );
    let arrival = world.enqueue(3, &Task::on(3, 2));
    assert_eq!(arrival, Arrival::Here { preempts: false });
}

#[test]
fn a_thread_that_shares_fairly_waits_where_it_ran_whoever_runs_there() {
    let world = world();
    let realtime = Task::with_policy(2, 1, Policy::Fifo(10));
    world.dispatcher.note_running(CpuId(2), &realtime);
    assert_eq!(
        world.enqueue(0, &Task::on(2, 2)),
        Arrival::Elsewhere(CpuId(2))
    );
}

#[test]
fn a_thread_goes_where_its_affinity_allows() {
    let world = world();
    world.idle(&[0, 1, 2]);
    let task = Task::on(1, 1);
    task.set_affinity(set(&[5, 7]));
    assert_eq!(world.enqueue(0, &task), Arrival::Elsewhere(CpuId(5)));
    let task = Task::on(6, 2);
    task.set_affinity(set(&[0, 7]));
    assert_eq!(
        world.dispatcher.choose(&task, world.at(3)),
        CpuId(0),
        "the idle one"
    );
    task.set_affinity(set(&[3, 7]));
    assert_eq!(
        world.dispatcher.choose(&task, world.at(3)),
        CpuId(7),
        "the near one"
    );
}

#[test]
fn cpus_that_do_not_run_get_nothing() {
    let world: World = World::new(2);
    let task = Task::on(0, 1);
    task.set_affinity(set(&[1, 5]));
    world.idle(&[5]);
    assert_eq!(world.enqueue(0, &task), Arrival::Elsewhere(CpuId(1)));
}

#[test]
fn a_cpu_that_stopped_idling_is_not_idle() {
    let world = world();
    world.idle(&[1, 2]);
    world.dispatcher.announce_busy(CpuId(1));
    assert_eq!(
        world.enqueue(0, &Task::on(1, 1)),
        Arrival::Elsewhere(CpuId(2))
    );
}

#[test]
fn a_cpu_that_idles_need_not_be_told_by_itself() {
    let world = world();
    world.idle(&[3]);
    assert_eq!(world.enqueue(3, &Task::on(3, 1)), Arrival::HereIdle);
}

#[test]
fn a_real_time_thread_goes_to_the_cpu_that_runs_the_worst_rank() {
    let world: World = World::new(4);
    for (cpu, priority) in [(0, 20), (1, 10), (2, 30), (3, 40)] {
        let running = Task::with_policy(cpu, 9, Policy::Fifo(priority));
        world.dispatcher.note_running(CpuId(cpu), &running);
    }
    let task = Task::with_policy(3, 1, Policy::Fifo(50));
    assert_eq!(world.dispatcher.choose(&task, world.at(0)), CpuId(1));
    task.set_affinity(set(&[0, 2, 3]));
    assert_eq!(world.dispatcher.choose(&task, world.at(0)), CpuId(0));
    world.idle(&[2]);
    assert_eq!(
        world.dispatcher.choose(&task, world.at(0)),
        CpuId(2),
        "an idle one"
    );
}

#[test]
fn a_real_time_thread_stays_where_it_ran_among_equals() {
    let world = world();
    let task = Task::with_policy(3, 1, Policy::Fifo(50));
    assert_eq!(world.dispatcher.choose(&task, world.at(0)), CpuId(3));
    let better = Task::with_policy(3, 2, Policy::Fifo(60));
    world.dispatcher.note_running(CpuId(3), &better);
    assert_eq!(
        world.dispatcher.choose(&task, world.at(7)),
        CpuId(0),
        "a near one"
    );
    task.move_to(CpuId(6));
    world.dispatcher.note_running(CpuId(6), &better);
    assert_eq!(
        world.dispatcher.choose(&task, world.at(0)),
        CpuId(4),
        "a near one"
    );
}

#[test]
fn a_cpu_with_arrivals_tells_a_near_one_that_idles() {
    let world = world();
    world.idle(&[1, 5]);
    assert_eq!(world.dispatcher.idle_helper(world.at(4)), Some(CpuId(5)));
    assert_eq!(world.dispatcher.idle_helper(world.at(2)), Some(CpuId(1)));
    world.dispatcher.announce_busy(CpuId(5));
    assert_eq!(world.dispatcher.idle_helper(world.at(4)), Some(CpuId(1)));
    assert_eq!(
        world.dispatcher.idle_helper(world.at(1)),
        None,
        "not itself"
    );
    let small: World = World::new(2);
    small.idle(&[5]);
    assert_eq!(
        small.dispatcher.idle_helper(small.at(0)),
        None,
        "it does not run"
    );
}

#[test]
fn threads_that_wait_and_cpus_that_work_are_runnable() {
    let world: World = World::new(4);
    world.put(0, &Task::on(0, 1));
    world.put(0, &Task::on(0, 2));
    world.idle(&[2, 3]);
    assert_eq!(world.dispatcher.runnable(world.at(0)), 4);
    assert_eq!(world.dispatcher.ready(CpuId(0)), 2);
}
