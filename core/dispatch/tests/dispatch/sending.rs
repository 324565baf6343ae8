//! Threads that one CPU sends to another.

use crate::world::{MS, Task, World, set};
use base::CpuId;
use dispatch::{Arrival, Policy, SLOTS};

/// CPU 1 sends a thread that ran for so many milliseconds to CPU 0.
fn send(world: &World, name: u32, millis: u64) {
    let task = Task::on(0, name);
    task.charge(millis * MS);
    assert_eq!(world.enqueue(1, &task), Arrival::Elsewhere(CpuId(0)));
}

fn waiting(world: &World) -> [usize; 2] {
    let dispatcher = &world.dispatcher;
    [dispatcher.ready(CpuId(0)), dispatcher.movable(CpuId(0))]
}

#[test]
fn who_is_sent_is_counted_at_once_and_has_no_place_before_it_is_looked_for() {
    let world: World = World::new(2);
    let task = Task::on(0, 1);
    let _ = world.enqueue(1, &task);
    assert_eq!((task.place(), waiting(&world)), (None, [1, 1]));
    assert_eq!(
        world
            .dispatcher
            .look_for_arrivals(&world.nobody, world.at(0)),
        Some(false)
    );
    assert_eq!(task.place().map(|place| place.cpu), Some(CpuId(0)));
    assert_eq!(waiting(&world), [1, 1]);
    assert_eq!([world.next(0), world.next(0)], [1, 0]);
    assert_eq!(waiting(&world), [0, 0]);
}

#[test]
fn more_than_the_list_holds_are_sent_and_run_in_their_order() {
    let world = World::new(2);
    let many = 2 * SLOTS as u32 + 1;
    (1..=many).for_each(|name| send(&world, name, u64::from(many - name)));
    assert_eq!(waiting(&world), [many as usize; 2]);
    let order: Vec<_> = (0..many).map(|_| world.next(0)).collect();
    assert_eq!(order, (1..=many).rev().collect::<Vec<_>>());
    assert_eq!(waiting(&world), [0, 0]);
}

#[test]
fn the_thread_before_those_that_the_list_holds_is_not_passed_over() {
    let world = World::new(2);
    let full = SLOTS as u32;
    (1..=full).for_each(|name| send(&world, name, 5));
    let before = Task::on(0, full + 1);
    let _ = world.enqueue(1, &before);
    assert!(before.place().is_some(), "there was no room on the list");
    assert_eq!(world.next(0), full + 1);
}

#[test]
fn a_thief_takes_who_was_sent() {
    let world = World::new(3);
    send(&world, 1, 0);
    assert_eq!([world.next(2), world.next(0)], [1, 0]);
}

#[test]
fn a_thief_takes_one_who_was_sent_without_a_look_at_the_queue() {
    let world: World = World::new(3);
    let [taken, left] = [1, 2].map(|name| Task::on(0, name));
    for task in [&taken, &left] {
        let _ = world.enqueue(1, task);
    }
    assert_eq!(world.next(2), 1);
    assert_eq!(left.place(), None, "whoever locks the queue gives it one");
    assert_eq!(waiting(&world), [1, 1]);
}

#[test]
fn a_thief_does_not_look_for_who_was_sent_and_may_not_come() {
    let world: World = World::new(3);
    let bound = Task::on(0, 1);
    bound.set_affinity(set(&[0]));
    let _ = world.enqueue(1, &bound);
    assert_eq!(waiting(&world), [1, 0]);
    assert_eq!(world.next(2), 0);
    assert_eq!(bound.place(), None, "nobody has looked");
    assert_eq!(world.next(0), 1);
    assert_eq!(waiting(&world), [0, 0]);
}

#[test]
fn a_real_time_thread_that_is_sent_is_found_by_all_at_once() {
    let world: World = World::new(2);
    let first = Task::with_policy(0, 1, Policy::Fifo(1));
    let _ = world.enqueue(1, &first);
    assert!(world.dispatcher.has_realtime());
    assert!(first.place().is_some());
}
