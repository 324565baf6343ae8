//! `loom` runs waiters, wakers and deadlines with exactly the queue's code in all orders that
//! matter.
//!
//! A thread whose wake-up is lost, or was spent on one that went away, sleeps for good beside
//! what it waits for: loom reports a deadlock. The last tests take a step away and expect that.

#![forbid(unsafe_code)]
#![allow(
    clippy::arc_with_non_send_sync,
    reason = "threads of loom are one thread of the system"
)]

mod machine;

use loom::thread::JoinHandle;
use machine::{Scene, TimeUp};
use models::{explore, start};

fn join<T>(thread: JoinHandle<T>) -> T {
    thread.join().expect("it ends")
}

#[test]
fn a_waiter_sees_the_change_or_is_woken() {
    explore(|| {
        let scene = Scene::new();
        let waiter = start(&scene, Scene::take);
        scene.put_one();
        scene.queue.wake_one();
        waiter.join().expect("it ends");
        assert!(scene.queue.is_empty());
    });
}

#[test]
fn each_of_two_waiters_gets_what_was_put_for_it() {
    explore(|| {
        let scene = Scene::new();
        let waiters = [(); 2].map(|()| start(&scene, Scene::take));
        // The second wake-up may choose one that has the first thing already.
        for _ in 0..2 {
            scene.put_one();
            scene.queue.wake_one();
        }
        let _ = waiters.map(join);
    });
}

#[test]
fn of_two_wakers_one_at_most_has_woken_the_only_waiter() {
    explore(|| {
        let scene = Scene::new();
        scene.put_one();
        let waiter = start(&scene, Scene::take);
        let other = start(&scene, |scene| scene.queue.wake_one());
        let is_own = scene.queue.wake_one();
        assert!(!(join(other) && is_own), "both say that they woke it");
        join(waiter);
    });
}

#[test]
fn all_are_woken_though_they_come_while_others_are() {
    explore(|| {
        let scene = Scene::new();
        let waiters = [(); 2].map(|()| start(&scene, Scene::take));
        scene.put_one();
        scene.put_one();
        scene.queue.wake_all();
        let _ = waiters.map(join);
    });
}

#[test]
fn a_wake_up_is_not_spent_on_one_that_goes_away() {
    explore(|| {
        let scene = Scene::new();
        let waiter = start(&scene, Scene::take);
        let hasty = start(&scene, Scene::take_at_once);
        scene.put_one();
        scene.queue.wake_one();
        if hasty.join().expect("it ends").is_ok() {
            // It took what was there, so another one is due.
            scene.put_one();
            scene.queue.wake_one();
        }
        waiter.join().expect("it ends");
        assert!(scene.queue.is_empty());
    });
}

#[test]
fn a_deadline_and_a_wake_up_at_once_lose_nothing() {
    explore(|| {
        let scene = Scene::new();
        let waiter = start(&scene, Scene::take_in_time);
        let clock = start(&scene, Scene::tick);
        scene.put_one();
        scene.queue.wake_one();
        clock.join().expect("it ends");
        let end = waiter.join().expect("it ends");
        let is_left = scene.take_at_once().is_ok();
        assert_eq!(end.is_err(), is_left, "it took what was put, or left it");
    });
}

#[test]
fn a_deadline_ends_a_wait_that_nobody_else_ends() {
    explore(|| {
        let scene = Scene::new();
        let waiter = start(&scene, Scene::take_in_time);
        scene.tick();
        let is_late = !scene.queue.is_empty();
        if is_late {
            scene.put_one();
            scene.queue.wake_one();
        }
        scene.tick();
        if let Err(end) = waiter_end(&scene, waiter) {
            assert_eq!(end, TimeUp);
        }
        assert!(scene.queue.is_empty());
    });
}

/// Ends the wait if nothing else does.
fn waiter_end(scene: &Scene, waiter: JoinHandle<Result<(), TimeUp>>) -> Result<(), TimeUp> {
    scene.put_one();
    scene.queue.wake_one();
    waiter.join().expect("it ends")
}

#[test]
fn a_gate_lets_one_pass_at_a_time_and_forgets_nobody() {
    explore(|| {
        let scene = Scene::new();
        let other = start(&scene, Scene::pass);
        scene.pass();
        other.join().expect("it ends");
        assert!(scene.gate.try_enter());
    });
}

#[test]
fn three_pass_a_gate() {
    explore(|| {
        let scene = Scene::new();
        let others = [(); 2].map(|()| start(&scene, Scene::pass));
        scene.pass();
        let _ = others.map(join);
    });
}

#[test]
#[should_panic(expected = "deadlock")]
fn loom_notices_a_waiter_that_looks_before_it_queues() {
    explore(|| {
        let scene = Scene::new();
        let waiter = start(&scene, Scene::take_looking_first);
        scene.put_one();
        scene.queue.wake_one();
        waiter.join().expect("it ends");
    });
}

#[test]
#[should_panic(expected = "deadlock")]
fn loom_notices_a_waker_that_wakes_first() {
    explore(|| {
        let scene = Scene::new();
        let waiter = start(&scene, Scene::take);
        scene.queue.wake_one();
        scene.put_one();
        waiter.join().expect("it ends");
    });
}

#[test]
#[should_panic(expected = "deadlock")]
fn loom_notices_one_that_goes_away_without_a_look() {
    explore(|| {
        let scene = Scene::new();
        let waiter = start(&scene, Scene::take);
        let hasty = start(&scene, Scene::give_up_at_once);
        scene.put_one();
        scene.queue.wake_one();
        hasty.join().expect("it ends");
        if scene.take_at_once().is_ok() {
            scene.put_one();
        }
        waiter.join().expect("it ends");
    });
}
