//! The words of locks with priority inheritance, as programs see them, and what is kept of a lock.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use crate::world::{Memory, Missing, Task, World, chances, tasks, unparked};
use futex::pi::{Attempt, Contended, OWNER_DIED, Place, WAITERS};
use futex::{BATCH_WAITERS, Key, Refusal, Stop, Thread};
use models::Heap;

type Outcome<T> = Result<T, Stop<Missing>>;

/// A lock, and threads of which the first has it.
struct Scene {
    table: World,
    tasks: Vec<Arc<Task>>,
    word: Memory,
    condition: Memory,
}

const LOCK: usize = 1;
const CONDITION: usize = 2;

fn key(index: usize) -> Key {
    Key::new(1, 4 * index as u64)
}

impl Scene {
    fn new(count: u32) -> Self {
        let scene = Self {
            table: World::default(),
            tasks: tasks(count),
            word: Memory::default(),
            condition: Memory::default(),
        };
        assert_eq!(scene.lock(1), Ok(Attempt::Taken));
        unparked();
        scene
    }

    /// The thread of this number.
    fn task(&self, id: u32) -> &Arc<Task> {
        &self.tasks[id as usize - 1]
    }

    fn lock(&self, id: u32) -> Outcome<Attempt> {
        let word = &&self.word;
        self.table
            .lock_pi(self.task(id), key(LOCK), word, Contended::Queue)
    }

    fn unlock(&self, id: u32) -> Outcome<()> {
        self.table.unlock_pi(self.task(id), key(LOCK), &&self.word)
    }

    /// The thread waits for the lock no longer.
    fn give_up(&self, id: u32) {
        let end = self.table.sleep_for_lock(self.task(id), || Err(()));
        assert_eq!(end, Err(()));
    }

    fn write_number(&self, id: u32) {
        let written = self.table.write_number(self.task(id), &&self.word);
        assert_eq!(written, Ok(()));
    }

    fn holds(&self) -> u32 {
        self.word.value.load(Relaxed)
    }

    /// As the C library does, without the kernel.
    fn store(&self, value: u32) {
        self.word.value.store(value, Relaxed);
    }

    /// The thread waits for the condition, to be moved to the lock `to`.
    fn wait_for_condition(&self, id: u32, to: usize) {
        let from = self.from();
        let me = self.task(id).clone();
        let entered = self.table.enqueue_for_requeue(me, &from, 0, key(to));
        assert_eq!(entered, Ok(()));
    }

    fn from(&self) -> Place<&Memory> {
        Place {
            key: key(CONDITION),
            word: &self.condition,
        }
    }

    /// Moves up to `limit` waiters in all from the condition to the lock.
    fn requeue(&self, limit: usize, moved: &mut usize) -> Outcome<()> {
        let to = Place {
            key: key(LOCK),
            word: &self.word,
        };
        self.table.requeue_pi(&self.from(), 0, &to, limit, moved)
    }
}

#[test]
fn a_word_says_who_has_the_lock_and_whether_somebody_waits() {
    let scene = Scene::new(3);
    assert_eq!(scene.holds(), 1);
    assert_eq!(scene.lock(2), Ok(Attempt::Queued));
    assert_eq!(scene.holds(), WAITERS | 1);
    assert_eq!(scene.unlock(1), Ok(()));
    assert_eq!(scene.holds(), WAITERS | 2);
    assert_eq!(scene.unlock(2), Ok(()));
    assert_eq!(scene.holds(), 0);
}

#[test]
fn who_takes_a_lock_sees_that_its_owner_died_but_no_mark_of_waiters() {
    let scene = Scene::new(2);
    scene.store(OWNER_DIED | WAITERS);
    assert_eq!(scene.lock(2), Ok(Attempt::Taken));
    assert_eq!(scene.holds(), OWNER_DIED | 2);
    assert_eq!(scene.lock(1), Ok(Attempt::Queued));
    assert_eq!(scene.holds(), OWNER_DIED | WAITERS | 2);
}

#[test]
fn a_lock_that_a_thread_is_moved_to_says_so_in_its_word() {
    let scene = Scene::new(2);
    scene.wait_for_condition(2, LOCK);
    assert_eq!(scene.requeue(1, &mut 0), Ok(()));
    assert_eq!(scene.holds(), WAITERS | 1, "it waits for the owner");
    assert_eq!(unparked(), []);

    for (before, after) in [(0, WAITERS | 2), (OWNER_DIED, OWNER_DIED | WAITERS | 2)] {
        let scene = Scene::new(2);
        scene.store(before);
        scene.wait_for_condition(2, LOCK);
        assert_eq!(scene.requeue(1, &mut 0), Ok(()));
        assert_eq!(scene.holds(), after, "others may be moved behind it");
        assert_eq!(unparked(), [2]);
    }
}

#[test]
fn a_thread_is_not_moved_to_a_lock_whose_word_names_it() {
    let scene = Scene::new(2);
    scene.wait_for_condition(2, LOCK);
    scene.store(2);
    assert_eq!(scene.requeue(1, &mut 0), Err(Refusal::Deadlock.into()));
    assert_eq!(scene.holds(), 2, "nothing has changed");
}

#[test]
fn who_comes_before_the_new_owner_has_written_its_number_waits_for_it() {
    for waiters in 1..=2 {
        let scene = Scene::new(4);
        for id in 2..2 + waiters {
            assert_eq!(scene.lock(id), Ok(Attempt::Queued));
        }
        scene.table.release_all(scene.task(1), true);
        assert_eq!(unparked(), [2], "the next has it");
        // The word still names the dead one.
        assert_eq!(scene.lock(4), Ok(Attempt::Queued));
        scene.write_number(2);
        assert_eq!(scene.holds(), OWNER_DIED | WAITERS | 2);
        assert_eq!(scene.unlock(2), Ok(()));
        assert_eq!(unparked().len(), 1);
    }
}

#[test]
fn who_is_moved_before_the_new_owner_has_written_its_number_waits_for_it() {
    let scene = Scene::new(3);
    assert_eq!(scene.lock(2), Ok(Attempt::Queued));
    scene.wait_for_condition(3, LOCK);
    scene.table.release_all(scene.task(1), true);
    assert_eq!(scene.requeue(1, &mut 0), Ok(()));
    assert_eq!(unparked(), [2]);
    scene.write_number(2);
    assert_eq!(scene.unlock(2), Ok(()));
    assert_eq!(unparked(), [3]);
}

#[test]
fn a_liar_takes_no_lock_from_an_owner_that_has_yet_to_write_its_number() {
    let scene = Scene::new(3);
    assert_eq!(scene.lock(2), Ok(Attempt::Queued));
    scene.table.release_all(scene.task(1), true);
    // Another writes its own number and unlocks what it never had.
    scene.store(3);
    assert_eq!(scene.unlock(3), Ok(()));
    scene.write_number(2);
    assert_eq!(scene.holds(), OWNER_DIED | WAITERS | 2);
}

#[test]
fn a_lock_that_nobody_waits_for_any_more_is_its_words_alone() {
    let scene = Scene::new(3);
    assert_eq!(scene.lock(2), Ok(Attempt::Queued));
    scene.give_up(2);
    // The owner unlocks and another locks without the kernel.
    scene.store(3);
    assert_eq!(scene.lock(2), Ok(Attempt::Queued));
    assert_eq!(scene.unlock(1), Err(Refusal::NotOwner.into()));
    assert_eq!(scene.unlock(3), Ok(()));
    assert_eq!(unparked(), [2]);
}

#[test]
fn a_lock_that_was_written_and_that_nobody_waits_for_is_its_words_alone() {
    let scene = Scene::new(3);
    assert_eq!(scene.lock(2), Ok(Attempt::Queued));
    scene.table.release_all(scene.task(1), true);
    scene.write_number(2);
    scene.store(3);
    assert_eq!(scene.lock(2), Ok(Attempt::Queued), "it is another's now");
}

#[test]
fn locks_that_are_over_take_no_memory() {
    let scene = Scene::new(3);
    for round in 0..20 {
        // The first takes room for the table and for the threads' shares; each needs the lock's.
        Heap::refuse_nth(if round < 2 { 0 } else { 2 });
        assert_eq!(scene.lock(2), Ok(Attempt::Queued), "round {round}");
        Heap::refuse_none();
        scene.give_up(2);
    }
    for round in 0..20 {
        let (one, other) = if round % 2 == 0 { (1, 2) } else { (2, 1) };
        Heap::refuse_nth(if round < 2 { 0 } else { 2 });
        assert_eq!(scene.lock(other), Ok(Attempt::Queued), "round {round}");
        Heap::refuse_none();
        assert_eq!(scene.unlock(one), Ok(()));
    }
}

#[test]
fn all_that_a_lock_may_need_later_is_asked_for_when_the_first_waits() {
    // Room in the waiter's share, for the lock and its waiter, in the owner's share, in the table.
    for nth in 1..=5 {
        let scene = Scene::new(2);
        Heap::refuse_nth(nth);
        let queued = scene.lock(2);
        Heap::refuse_none();
        let expected = match nth {
            5 => Ok(Attempt::Queued),
            _ => Err(Refusal::OutOfMemory.into()),
        };
        assert_eq!(queued, expected, "request {nth}");
    }
}

#[test]
fn others_have_a_chance_after_each_lock_that_a_dying_thread_leaves() {
    let table = World::default();
    let tasks = tasks(4);
    let words: [Memory; 3] = Default::default();
    for (index, word) in words.iter().enumerate() {
        for who in [0, index + 1] {
            table
                .lock_pi(&tasks[who], key(index), &word, Contended::Queue)
                .expect("no circle");
        }
    }
    chances();
    table.release_all(&tasks[0], true);
    assert_eq!((unparked().len(), chances()), (3, 3));
}

#[test]
fn who_gives_a_lock_up_is_lent_nothing_for_it() {
    let scene = Scene::new(3);
    scene.task(2).own.store(10, Relaxed);
    scene.task(3).own.store(20, Relaxed);
    for id in 2..4 {
        assert_eq!(scene.lock(id), Ok(Attempt::Queued));
    }
    assert_eq!(scene.task(1).rank(), 10);
    assert_eq!(scene.unlock(1), Ok(()));
    assert_eq!(scene.task(1).rank(), Task::FAIR);
    // What waits for the new owner is nothing to the old one.
    scene.task(3).own.store(5, Relaxed);
    scene.table.note_rank(scene.task(3));
    assert_eq!(scene.task(1).rank(), Task::FAIR);
    assert_eq!(scene.task(2).rank(), 5);
}

#[test]
fn a_requeue_that_goes_on_does_not_look_at_the_condition_again() {
    let scene = Scene::new(3);
    for id in 2..4 {
        scene.wait_for_condition(id, LOCK);
    }
    let mut moved = 0;
    assert_eq!(scene.requeue(1, &mut moved), Ok(()));
    scene.condition.value.store(9, Relaxed);
    assert_eq!(scene.requeue(2, &mut moved), Ok(()));
    assert_eq!(moved, 2);
    let fresh = scene.requeue(1, &mut 0);
    assert_eq!(fresh, Err(Refusal::Changed.into()));
}

#[test]
fn a_requeue_that_is_refused_half_way_has_moved_what_it_says() {
    let scene = Scene::new(3);
    scene.wait_for_condition(2, LOCK);
    scene.wait_for_condition(3, LOCK + 10);
    let mut moved = 0;
    assert_eq!(scene.requeue(1, &mut moved), Ok(()));
    assert_eq!(scene.requeue(2, &mut moved), Ok(()), "one was moved");
    assert_eq!(moved, 1);
    assert_eq!(scene.requeue(1, &mut 0), Err(Refusal::Inconsistent.into()));
}

#[test]
fn a_requeue_whose_page_leaves_half_way_goes_on_when_it_is_back() {
    let scene = Scene::new(3);
    for id in 2..4 {
        scene.wait_for_condition(id, LOCK);
    }
    let mut moved = 0;
    assert_eq!(scene.requeue(1, &mut moved), Ok(()));
    scene.word.is_missing.set(true);
    assert_eq!(scene.requeue(2, &mut moved), Err(Stop::Fault(Missing)));
    assert_eq!(moved, 1);
    scene.word.is_missing.set(false);
    assert_eq!(scene.requeue(2, &mut moved), Ok(()));
    assert_eq!(moved, 2);
}

#[test]
fn many_are_moved_in_batches() {
    let count = 2 * BATCH_WAITERS + 2;
    let scene = Scene::new(count as u32 + 1);
    for id in 2..count as u32 + 2 {
        scene.wait_for_condition(id, LOCK);
    }
    chances();
    let mut moved = 0;
    assert_eq!(scene.requeue(usize::MAX, &mut moved), Ok(()));
    assert_eq!((moved, chances()), (count, 2), "between the batches");
    assert_eq!(scene.requeue(usize::MAX, &mut 0), Ok(()));
}

#[test]
fn a_chain_of_owners_that_is_too_long_counts_as_a_circle() {
    for (links, is_refused) in [(900, false), (1100, true)] {
        let table = World::default();
        let tasks = tasks(links + 1);
        let words: Vec<Memory> = tasks.iter().map(|_| Memory::default()).collect();
        let lock = |who: usize, lock: usize| {
            let word = &&words[lock];
            table.lock_pi(&tasks[who], key(lock), word, Contended::Queue)
        };
        for who in 0..links as usize {
            assert_eq!(lock(who, who), Ok(Attempt::Taken));
        }
        for who in 1..links as usize {
            assert_eq!(lock(who - 1, who), Ok(Attempt::Queued));
        }
        let last = lock(links as usize, 0);
        assert_eq!(last == Err(Refusal::Deadlock.into()), is_refused);
    }
}
