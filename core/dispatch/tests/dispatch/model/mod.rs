//! `loom` runs parks, wake-ups, time-outs and halts with the dispatcher's own code in all orders
//! that matter.
//!
//! A thread whose wake-up is lost is never run again, and a CPU that halts beside a thread that
//! waits sleeps for good: loom reports both as deadlocks. A thread that two CPUs run, or that one
//! resumes before its registers are saved, is found by the thread itself.
//!
//! The last tests take a step away and expect loom to notice.

#![allow(
    clippy::arc_with_non_send_sync,
    reason = "threads of loom are one thread of the system"
)]

mod machine;

use crate::world::{Cpus, Named, World};
use base::lock::Family;
use base::{CpuId, CpuSet};
use dispatch::{Arrival, OffCpu, Policy, State};
use loom::thread;
use machine::{Ended, Scene};
use models::{Watched, explore};
use std::sync::Arc;

type Count = <Watched as Family>::Count;

/// Two threads wait for CPU 0, put there by CPU `from`, and CPUs 1 and 2 look for one each, again as
/// long as `looks_again`.
fn two_thieves(from: u32, looks_again: fn(&World<Watched>, CpuId) -> bool) {
    explore(move || {
        let world = Arc::new(World::<Watched>::new(3));
        for name in [1, 2] {
            let _ = world
                .dispatcher
                .enqueue(Named::on(0, name), &world.nobody, &at(from));
        }
        let thief = |cpu| {
            let world = world.clone();
            move || loop {
                if let Some(task) = world.dispatcher.next(&at(cpu)) {
                    return task.name;
                }
                assert!(looks_again(&world, CpuId(cpu)), "a thread is left behind");
                thread::yield_now();
            }
        };
        let other = thread::spawn(thief(1));
        let own = thief(2)();
        // What the other one says is said by its panic.
        let other = other.join().expect("left behind");
        assert_ne!(own, other);
    });
}

#[test]
fn a_thief_that_was_refused_comes_to_rest_once_nothing_is_left() {
    explore(|| {
        let world = Arc::new(World::<Watched>::new(3));
        let _ = world
            .dispatcher
            .enqueue(Named::on(0, 1), &world.nobody, &at(0));
        let thief = |cpu| {
            let world = world.clone();
            move || loop {
                if world.dispatcher.next(&at(cpu)).is_some() {
                    return 1;
                }
                if !world.dispatcher.was_refused(CpuId(cpu)) {
                    return 0;
                }
                thread::yield_now();
            }
        };
        let other = thread::spawn(thief(1));
        let own = thief(2)();
        assert_eq!(
            own + other.join().expect("it ends"),
            1,
            "one of them has it"
        );
    });
}

fn at(cpu: u32) -> Cpus {
    let cpus = Cpus::new(3);
    cpus.here.set(cpu);
    cpus
}

/// CPU 0 runs a thread that waits for the condition; CPU 1 makes it true and wakes.
fn condition(wait: fn(&Scene) -> Ended, make: fn(&Scene)) {
    explore(move || {
        let scene = Arc::new(Scene::new());
        let waiter = {
            let scene = scene.clone();
            thread::spawn(move || wait(&scene))
        };
        make(&scene);
        waiter.join().expect("it ends");
    });
}

#[test]
fn a_thread_that_leaves_its_cpu_sees_the_condition_or_is_woken() {
    condition(
        |scene| scene.wait_switched(0),
        |scene| {
            scene.make_true();
            scene.wake(1);
        },
    );
}

#[test]
fn a_thread_that_waits_in_place_sees_the_condition_or_ends_its_halt() {
    condition(
        |scene| scene.wait_in_place(0),
        |scene| {
            scene.make_true();
            scene.wake(1);
        },
    );
}

#[test]
fn of_two_wake_ups_the_second_is_ignored_only_where_the_first_is_to_come() {
    explore(|| {
        let scene = Arc::new(Scene::new());
        let waiter = {
            let scene = scene.clone();
            thread::spawn(move || scene.wait_switched(0))
        };
        let other = {
            let scene = scene.clone();
            thread::spawn(move || scene.wake(2))
        };
        scene.make_true();
        scene.wake(1);
        other.join().expect("it ends");
        waiter.join().expect("it ends");
    });
}

#[test]
fn a_thread_whose_time_is_up_as_it_is_woken_runs_once() {
    explore(|| {
        let scene = Arc::new(Scene::new());
        let waiter = {
            let scene = scene.clone();
            thread::spawn(move || scene.wait_with_patience(0))
        };
        scene.make_true();
        scene.wake(1);
        let ended = waiter.join().expect("it ends");
        // It saw the condition, or its time was up before.
        assert!(ended == Ended::Seen || ended == Ended::TimeUp);
        assert!(scene.queue_is_empty(), "it runs, and waits nowhere");
        let runs = matches!(scene.state(), State::Running | State::Notified);
        assert!(runs, "a wake-up that came late is noted");
    });
}

#[test]
fn a_thread_that_makes_way_is_queued_once_though_it_is_woken() {
    explore(|| {
        let scene = Arc::new(Scene::new());
        let waker = {
            let scene = scene.clone();
            thread::spawn(move || scene.wake(1))
        };
        let left = scene.make_way();
        assert_eq!(left, OffCpu::MadeWay);
        scene.resume(0);
        waker.join().expect("it ends");
        assert!(scene.queue_is_empty());
    });
}

#[test]
fn two_cpus_do_not_take_one_thread() {
    explore(|| {
        let scene = Arc::new(Scene::new());
        scene.put_ready(0);
        let thief = {
            let scene = scene.clone();
            thread::spawn(move || scene.take(1))
        };
        let own = scene.take(0);
        let stolen = thief.join().expect("it ends");
        assert!(own != stolen, "one of them has it");
    });
}

#[test]
fn a_cpu_that_halts_runs_what_comes_to_its_queue() {
    explore(|| {
        let scene = Arc::new(Scene::new());
        let cpu = {
            let scene = scene.clone();
            thread::spawn(move || scene.run_until_taken(0))
        };
        scene.put_ready_from(1, 0);
        cpu.join().expect("it ends");
    });
}

/// A thread comes to CPU 0's queue from CPU `from`, and `change` changes what its place depends on
/// meanwhile.
fn changed_as_it_comes(
    from: u32,
    change: fn(&World<Watched>, &Arc<Named<Count>>),
    check: fn(&World<Watched>),
) {
    explore(move || {
        let world = Arc::new(World::<Watched>::new(2));
        let task = Named::on(0, 1);
        let other = {
            let (world, task) = (world.clone(), task.clone());
            thread::spawn(move || change(&world, &task))
        };
        let _ = world.dispatcher.enqueue(task, &world.nobody, &at(from));
        other.join().expect("it ends");
        check(&world);
    });
}

/// Gives the thread another policy, as `kernel/sched` does.
fn change_policy(world: &World<Watched>, task: &Arc<Named<Count>>, policy: Policy) {
    assert!(task.set_policy(policy, false));
    if let Some(task) = world.dispatcher.take_out(task) {
        let _ = world.dispatcher.enqueue(task, &world.nobody, &at(1));
    }
}

#[test]
fn a_thread_that_gets_a_rank_as_it_comes_to_a_queue_waits_by_that_rank() {
    changed_as_it_comes(
        0,
        |world, task| change_policy(world, task, Policy::Fifo(10)),
        |world| {
            assert!(world.dispatcher.has_realtime(), "it counts as such");
            let task = world.dispatcher.next(&at(1)).expect("it waits");
            let place = task.place();
            assert_eq!((task.rank(), place), (Policy::Fifo(10).rank(), None));
            assert!(!world.dispatcher.has_realtime(), "and no longer");
        },
    );
}

#[test]
fn a_thread_that_may_run_elsewhere_as_it_comes_to_a_queue_is_counted_as_such() {
    changed_as_it_comes(
        0,
        |world, task| world.dispatcher.set_affinity(task, CpuSet::one(CpuId(0))),
        |world| assert_eq!(world.dispatcher.movable(CpuId(0)), 0),
    );
}

/// CPU 0 was told that somebody has come, and looks.
fn look(world: &World<Watched>) -> bool {
    let arrivals = world.dispatcher.look_for_arrivals(&world.nobody, &at(0));
    arrivals.expect("it waits")
}

#[test]
fn a_thread_that_gets_a_rank_as_it_is_sent_preempts_by_that_rank() {
    changed_as_it_comes(
        1,
        |world, task| change_policy(world, task, Policy::Fifo(10)),
        |world| {
            assert!(look(world), "it goes before those that share fairly");
            assert!(world.dispatcher.has_realtime(), "it counts as such");
            let task = world.dispatcher.next(&at(1)).expect("it waits");
            assert_eq!(task.place(), None);
            assert!(!world.dispatcher.has_realtime(), "and no longer");
        },
    );
}

#[test]
fn a_thread_that_may_run_elsewhere_as_it_is_sent_is_counted_as_such_once_it_has_come() {
    changed_as_it_comes(
        1,
        |world, task| world.dispatcher.set_affinity(task, CpuSet::one(CpuId(0))),
        |world| {
            look(world);
            assert_eq!(world.dispatcher.movable(CpuId(0)), 0);
            assert_eq!(world.dispatcher.ready(CpuId(0)), 1);
        },
    );
}

#[test]
fn a_cpu_that_empties_its_queue_as_threads_are_sent_runs_them_all() {
    explore(|| {
        let world = Arc::new(World::<Watched>::new(3));
        let send = |from, name| {
            let world = world.clone();
            move || {
                let task = Named::on(0, name);
                let arrival = world.dispatcher.enqueue(task, &world.nobody, &at(from));
                assert_eq!(
                    arrival,
                    Arrival::Elsewhere(CpuId(0)),
                    "it is told afterwards"
                );
            }
        };
        let other = thread::spawn(send(1, 1));
        let before = world.dispatcher.next(&at(0)).map_or(0, |task| task.name);
        send(2, 2)();
        let during = world.dispatcher.next(&at(0)).map_or(0, |task| task.name);
        other.join().expect("it ends");
        // All have told it by now.
        let rest = || Some(world.dispatcher.next(&at(0))?.name);
        let rest: u32 = std::iter::from_fn(rest).sum();
        assert_eq!(before + during + rest, 3, "each runs once");
        assert_eq!(world.dispatcher.ready(CpuId(0)), 0);
    });
}

#[test]
fn of_two_thieves_none_halts_beside_a_thread_that_waits() {
    two_thieves(0, |world, cpu| world.dispatcher.was_refused(cpu));
}

#[test]
fn of_two_thieves_none_halts_beside_a_thread_that_was_sent() {
    two_thieves(1, |world, cpu| world.dispatcher.was_refused(cpu));
}

#[test]
#[should_panic(expected = "left behind")]
fn loom_notices_a_thief_that_halts_though_it_was_refused() {
    two_thieves(0, |_, _| false);
}

#[test]
#[should_panic(expected = "deadlock")]
fn loom_notices_a_park_that_looks_at_the_condition_first() {
    condition(
        |scene| scene.wait_switched_late(0),
        |scene| {
            scene.make_true();
            scene.wake(1);
        },
    );
}

#[test]
#[should_panic(expected = "deadlock")]
fn loom_notices_a_waker_that_wakes_first() {
    condition(
        |scene| scene.wait_switched(0),
        |scene| {
            scene.wake(1);
            scene.make_true();
        },
    );
}

#[test]
#[should_panic(expected = "deadlock")]
fn loom_notices_a_halt_that_nobody_ends() {
    condition(
        |scene| scene.wait_in_place(0),
        |scene| {
            scene.make_true();
            scene.wake_without_interrupt();
        },
    );
}
