//! `loom` runs the table's own code with two or three threads in all orders that matter.
//!
//! A thread whose wake-up is lost sleeps for good, which loom reports as a deadlock. A wake-up
//! that was counted is somebody's: as many sleeps end well as the wakers say.
//!
//! The last tests take a step away and expect loom to notice.

mod machine;

use std::sync::Arc;

use futex::pi::{Attempt, Contended, Moved, Place};
use futex::{Key, MATCH_ANY, Stop};
use loom::sync::atomic::Ordering::{Relaxed, SeqCst};
use machine::{Memory, Scene, Task, scene};
use models::{explore, start};

fn key(index: u64) -> Key {
    Key::new(1, 4 * index)
}

/// Whether the thread's wait for the word `from` ended by a wake-up.
fn wait(scene: &Scene, me: usize, patience: usize) -> Option<bool> {
    let task = scene.tasks[me].clone();
    let word = Memory(&scene.words[0]);
    match scene
        .table
        .enqueue(task.clone(), key(0), &word, 0, MATCH_ANY)
    {
        Ok(()) => Some(scene.table.sleep(&task, task.patience(patience)).is_ok()),
        Err(Stop::Refused(_)) => None,
        Err(Stop::Fault(fault)) => match fault {},
    }
}

#[test]
fn a_waiter_sees_the_new_value_or_is_woken() {
    explore(|| {
        let scene = scene(1);
        let waiter = start(&scene, |scene| wait(scene, 0, usize::MAX));
        scene.words[0].store(1, Relaxed);
        let woken = scene.table.wake(key(0), MATCH_ANY, 1);
        let ended = waiter.join().expect("it ends");
        assert_eq!(ended, (woken == 1).then_some(true));
    });
}

#[test]
fn a_wake_up_that_was_counted_is_somebodys_though_time_is_up() {
    explore(|| {
        let scene = scene(2);
        let waiters = [0, 1].map(|me| start(&scene, move |scene| wait(scene, me, 0)));
        let woken = scene.table.wake(key(0), MATCH_ANY, 1);
        let ended = waiters.map(|waiter| waiter.join().expect("it ends"));
        let well = ended.iter().filter(|end| **end == Some(true)).count();
        assert_eq!(well, woken);
    });
}

#[test]
fn a_waiter_that_was_moved_is_found_where_it_is() {
    explore(|| {
        let scene = scene(1);
        let waiter = start(&scene, |scene| wait(scene, 0, usize::MAX));
        let mover = start(&scene, |scene| {
            let word = Memory(&scene.words[0]);
            let check = Some((&word, 0));
            scene.table.requeue((key(0), key(1)), (0, 1), check)
        });
        scene.words[0].store(1, SeqCst);
        let moved = mover.join().expect("it ends").map_or(0, |(_, moved)| moved);
        let woken = scene.table.wake(key(moved as u64), MATCH_ANY, 1);
        let ended = waiter.join().expect("it ends");
        assert_eq!(ended, (woken == 1).then_some(true));
    });
}

#[test]
fn a_waiter_whose_time_is_up_while_it_is_moved_is_nowhere_afterwards() {
    explore(|| {
        let scene = scene(1);
        let waiter = start(&scene, |scene| wait(scene, 0, 0));
        let word = Memory(&scene.words[0]);
        let check = Some((&word, 0));
        let moved = scene.table.requeue((key(0), key(1)), (0, 1), check);
        assert!(moved.is_ok());
        let woken = scene.table.wake(key(1), MATCH_ANY, 1);
        let ended = waiter.join().expect("it ends");
        assert_eq!(ended, Some(woken == 1));
        let left = [0, 1].map(|at| scene.table.wake(key(at), MATCH_ANY, 1));
        assert_eq!(left, [0, 0]);
    });
}

#[test]
fn a_waiter_that_was_moved_and_not_woken_knows_it() {
    explore(|| {
        let scene = scene(1);
        let waiter = start(&scene, |scene| wait(scene, 0, 0));
        let word = Memory(&scene.words[0]);
        for to in 1..3 {
            let moved = scene
                .table
                .requeue((key(0), key(to)), (0, 1), Some((&word, 0)));
            assert!(moved.is_ok());
        }
        assert_eq!(waiter.join().expect("it ends"), Some(false));
        let left = [0, 1, 2].map(|at| scene.table.wake(key(at), MATCH_ANY, 1));
        assert_eq!(left, [0, 0, 0]);
    });
}

/// Takes the lock of word 0 as the C library does; whether it has it.
fn lock(scene: &Scene, task: &Arc<Task>, patience: usize) -> bool {
    let word = &scene.words[0];
    if word.compare_exchange(0, task.id(), SeqCst, SeqCst).is_ok() {
        return true;
    }
    match scene
        .table
        .lock_pi(task, key(0), &Memory(word), Contended::Queue)
    {
        Ok(Attempt::Taken) => true,
        Ok(Attempt::Queued) => {
            let park = task.patience(patience);
            scene.table.sleep_for_lock(task, park).is_ok()
        }
        Err(why) => panic!("{why:?}"),
    }
}

fn unlock(scene: &Scene, task: &Task) {
    let word = &scene.words[0];
    if word.compare_exchange(task.id(), 0, SeqCst, SeqCst).is_err() {
        let unlocked = scene.table.unlock_pi(task, key(0), &Memory(word));
        assert_eq!(unlocked, Ok(()));
    }
}

fn pass_through(scene: &Scene, me: usize, patience: usize) {
    let task = scene.tasks[me].clone();
    if lock(scene, &task, patience) {
        scene.inside.enter();
        scene.inside.leave();
        unlock(scene, &task);
    }
}

#[test]
fn a_lock_has_one_owner_and_none_waits_for_good() {
    explore(|| {
        let scene = scene(2);
        let other = start(&scene, |scene| pass_through(scene, 1, usize::MAX));
        pass_through(&scene, 0, usize::MAX);
        other.join().expect("it ends");
        assert_eq!(scene.words[0].load(SeqCst), 0);
    });
}

#[test]
fn a_lock_that_is_handed_over_while_time_is_up_has_an_owner_that_knows() {
    explore(|| {
        let scene = scene(2);
        let other = start(&scene, |scene| pass_through(scene, 1, 0));
        pass_through(&scene, 0, usize::MAX);
        other.join().expect("it ends");
        // Who gave up may have left the mark that somebody waits.
        let last = lock(&scene, &scene.tasks[0], 0);
        assert!(last, "nobody has it");
    });
}

#[test]
fn who_waits_for_a_condition_has_the_lock_or_does_not_wait_for_it() {
    explore(|| {
        let scene = scene(2);
        let waiter = start(&scene, |scene| {
            let me = scene.tasks[1].clone();
            let from = Place {
                key: key(1),
                word: Memory(&scene.words[1]),
            };
            let entered = scene
                .table
                .enqueue_for_requeue(me.clone(), &from, 0, key(0));
            assert_eq!(entered, Ok(()));
            let moved = scene.table.sleep_for_requeue(&me, key(1), me.patience(0));
            if moved == Moved::HasLock {
                scene.inside.enter();
                scene.inside.leave();
                unlock(scene, &me);
            }
        });
        assert!(lock(&scene, &scene.tasks[0], 0));
        scene.inside.enter();
        let from = Place {
            key: key(1),
            word: Memory(&scene.words[1]),
        };
        let to = Place {
            key: key(0),
            word: Memory(&scene.words[0]),
        };
        let moved = scene.table.requeue_pi(&from, 0, &to, 1, &mut 0);
        assert_eq!(moved, Ok(()));
        scene.inside.leave();
        unlock(&scene, &scene.tasks[0]);
        waiter.join().expect("it ends");
        assert!(lock(&scene, &scene.tasks[0], 0), "nobody has it");
    });
}

/// One thread queues itself as `enter` does, another changes the word and wakes as `signal` does:
/// in the end none is queued that looked at the old word.
fn explore_lost(enter: fn(&Scene), signal: fn(&Scene)) {
    explore(move || {
        let scene = scene(1);
        let waiter = start(&scene, enter);
        signal(&scene);
        waiter.join().expect("it ends");
        let left = scene.table.wake(key(0), MATCH_ANY, 1);
        assert_eq!(left, 0, "a wake-up is lost");
    });
}

fn enter(scene: &Scene) {
    let task = scene.tasks[0].clone();
    let word = Memory(&scene.words[0]);
    // It may have changed already.
    let _ = scene.table.enqueue(task, key(0), &word, 0, MATCH_ANY);
}

fn signal(scene: &Scene) {
    scene.words[0].store(1, Relaxed);
    scene.table.wake(key(0), MATCH_ANY, 1);
}

#[test]
fn nobody_is_queued_that_looked_at_the_old_word() {
    explore_lost(enter, signal);
}

#[test]
#[should_panic(expected = "a wake-up is lost")]
fn loom_notices_a_waiter_that_looks_before_it_locks() {
    fn enter_blindly(scene: &Scene) {
        let task = scene.tasks[0].clone();
        let unchanging = Memory(&scene.words[1]);
        if scene.words[0].load(SeqCst) == 0 {
            let entered = scene.table.enqueue(task, key(0), &unchanging, 0, MATCH_ANY);
            assert_eq!(entered, Ok(()));
        }
    }
    explore_lost(enter_blindly, signal);
}

#[test]
#[should_panic(expected = "a wake-up is lost")]
fn loom_notices_a_waker_that_changes_the_word_too_late() {
    fn signal_too_soon(scene: &Scene) {
        scene.table.wake(key(0), MATCH_ANY, 1);
        scene.words[0].store(1, Relaxed);
    }
    explore_lost(enter, signal_too_soon);
}
