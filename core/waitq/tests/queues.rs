//! Who is woken, and how a wait ends.

#![forbid(unsafe_code)]

mod world;

use std::cell::Cell;
use std::collections::VecDeque;
use std::sync::Arc;

use models::{Heap, for_each_seed};
use waitq::{Gate, Parking, WaitQueue};
use world::{Task, World};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct TimeUp;

type Queue = WaitQueue<World>;

/// Has `task` wait until `park` says otherwise; it never becomes ready.
fn wait(
    queue: &Queue,
    task: &Arc<Task>,
    park: &mut dyn FnMut(Parking) -> Result<(), TimeUp>,
) -> Result<(), TimeUp> {
    task.run();
    queue.wait(park, &mut || None)
}

/// Has each of `tasks` wait within the wait of those before it, then calls `act`.
fn all_wait(queue: &Queue, tasks: &[Arc<Task>], act: &mut dyn FnMut()) {
    let Some((first, others)) = tasks.split_first() else {
        return act();
    };
    let ended = wait(queue, first, &mut |_| {
        all_wait(queue, others, act);
        Err(TimeUp)
    });
    assert_eq!(ended, Err(TimeUp));
}

fn tasks(count: u32) -> Vec<Arc<Task>> {
    (1..=count).map(Task::new).collect()
}

fn woken(tasks: &[Arc<Task>]) -> Vec<usize> {
    tasks.iter().map(|task| task.woken()).collect()
}

#[test]
fn who_has_waited_longest_is_woken_first() {
    let (queue, tasks) = (Queue::default(), tasks(3));
    all_wait(&queue, &tasks, &mut || {
        assert!(queue.wake_one());
        assert_eq!(woken(&tasks), [1, 0, 0]);
        assert!(queue.wake_one());
        assert_eq!(woken(&tasks), [1, 1, 0]);
        assert_eq!(queue.len(), 1);
        assert!(!queue.is_empty(), "one waits still");
    });
    assert!(queue.is_empty());
    assert!(!queue.wake_one(), "nobody waits");
}

#[test]
fn all_are_woken_once() {
    let (queue, tasks) = (Queue::default(), tasks(5));
    all_wait(&queue, &tasks, &mut || {
        queue.wake_all();
        queue.wake_all();
        assert_eq!(woken(&tasks), [1; 5]);
    });
}

#[test]
fn a_wait_for_what_is_there_does_not_park() {
    let (queue, task) = (Queue::default(), Task::new(1));
    task.run();
    let value = queue.wait(
        &mut |_| -> Result<(), TimeUp> { unreachable!() },
        &mut || Some(7),
    );
    assert_eq!(value, Ok(7));
    assert!(queue.is_empty());
}

#[test]
fn a_wait_goes_on_after_a_spurious_wake_up() {
    let (queue, task) = (Queue::default(), Task::new(1));
    let mut parks = 0;
    let ended = wait(&queue, &task, &mut |parking| {
        assert_eq!((parking, queue.len()), (Parking::Queued, 1));
        parks += 1;
        if parks < 5 { Ok(()) } else { Err(TimeUp) }
    });
    assert_eq!((ended, parks), (Err(TimeUp), 5));
    assert!(queue.is_empty());
}

#[test]
fn what_became_true_as_time_was_up_counts() {
    let (queue, task, value) = (Queue::default(), Task::new(1), Cell::new(None));
    task.run();
    let ended = queue.wait(
        &mut |_| {
            value.set(Some(3));
            Err(TimeUp)
        },
        &mut || value.get(),
    );
    assert_eq!(ended, Ok(3));
    assert!(queue.is_empty());
}

#[test]
fn who_finds_no_memory_is_told_and_can_look_again() {
    let (queue, task) = (Queue::default(), Task::new(1));
    let mut seen = Vec::new();
    Heap::refuse_nth(1);
    let ended = wait(&queue, &task, &mut |parking| {
        seen.push((parking, queue.len()));
        Heap::refuse_none();
        if seen.len() < 2 { Ok(()) } else { Err(TimeUp) }
    });
    assert_eq!(ended, Err(TimeUp));
    assert_eq!(seen, [(Parking::Unqueued, 0), (Parking::Queued, 1)]);
}

#[test]
fn who_found_no_memory_wakes_nobody_as_it_leaves() {
    let (queue, tasks) = (Queue::default(), tasks(2));
    let _ = wait(&queue, &tasks[0], &mut |_| {
        tasks[1].run();
        Heap::refuse_nth(1);
        let value = queue.wait(&mut |_| Err(TimeUp), &mut || Some(1));
        Heap::refuse_none();
        assert_eq!(value, Ok(1));
        Err(TimeUp)
    });
    assert_eq!(woken(&tasks), [0, 0]);
}

#[test]
fn who_leaves_takes_nobody_elses_place() {
    for_each_seed(200, |seed, mut random| {
        let (queue, tasks) = (Queue::default(), tasks(8));
        let mut order: VecDeque<u32> = (1..=8).collect();
        all_wait(&queue, &tasks, &mut || {
            for _ in 0..random.below(9) {
                let (before, first) = (woken(&tasks), order.pop_front());
                assert_eq!(queue.wake_one(), first.is_some(), "seed {seed}");
                let after = woken(&tasks);
                let who = (0..8).find(|at| before[*at] != after[*at]);
                assert_eq!(who.map(|at| at as u32 + 1), first, "seed {seed}");
            }
        });
        assert!(queue.is_empty(), "seed {seed}");
    });
}

#[test]
fn those_in_the_middle_may_leave() {
    let (queue, tasks) = (Queue::default(), tasks(3));
    let [first, middle, last] = &tasks[..] else {
        unreachable!()
    };
    // The first one waits while the middle one comes and goes, and the last one comes.
    let _ = wait(&queue, first, &mut |_| {
        let _ = wait(&queue, middle, &mut |_| Err(TimeUp));
        assert_eq!(queue.len(), 1);
        let _ = wait(&queue, last, &mut |_| {
            queue.wake_all();
            Err(TimeUp)
        });
        Err(TimeUp)
    });
    assert_eq!(woken(&tasks), [1, 0, 1]);
}

#[test]
fn one_passes_a_gate_at_a_time() {
    let gate: Gate<World> = Gate::default();
    let tasks = tasks(2);
    tasks[0].run();
    gate.enter(&mut |_| unreachable!("it is free"));
    assert!(!gate.try_enter());
    tasks[1].run();
    let mut parks = 0;
    gate.enter(&mut |parking| {
        assert_eq!(parking, Parking::Queued);
        parks += 1;
        gate.leave();
    });
    assert_eq!((parks, tasks[1].woken()), (1, 1));
    assert!(!gate.try_enter(), "the second one is inside");
    gate.leave();
    assert!(gate.try_enter());
}
