//! Long histories of plain waiters, beside a list that is searched from its front.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use crate::world::{Memory, Missing, Task, World, tasks, unparked};
use futex::{BATCH_WAITERS, Key, MATCH_ANY, Operation, Refusal, Stop, Thread};
use models::{Heap, Random, for_each_seed};

const KEYS: usize = 5;

/// Who waits, in the order in which they came to where they are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Waiting {
    id: u32,
    key: usize,
    bits: u32,
    rank: u8,
}

/// A list in place of the table.
#[derive(Default)]
struct Model(Vec<Waiting>);

impl Model {
    /// Takes out the best `count` for `key`: by rank, then by arrival.
    fn take(&mut self, key: usize, bits: u32, count: usize) -> Vec<Waiting> {
        let matches = |one: &&Waiting| one.key == key && one.bits & bits != 0;
        let mut best: Vec<Waiting> = self.0.iter().filter(matches).copied().collect();
        best.sort_by_key(|one| one.rank);
        best.truncate(count);
        self.0.retain(|one| !best.contains(one));
        best
    }

    fn wake(&mut self, key: usize, bits: u32, count: usize) -> Vec<u32> {
        let woken = self.take(key, bits, count);
        woken.iter().map(|one| one.id).collect()
    }

    fn requeue(&mut self, from: usize, to: usize, count: usize) -> usize {
        if from == to {
            return 0;
        }
        let moved = self.take(from, MATCH_ANY, count);
        self.0
            .extend(moved.iter().map(|one| Waiting { key: to, ..*one }));
        moved.len()
    }

    fn waits(&self, id: u32) -> bool {
        self.0.iter().any(|one| one.id == id)
    }
}

struct Run {
    table: World,
    model: Model,
    tasks: Vec<Arc<Task>>,
    words: [Memory; KEYS],
    random: Random,
}

fn key(index: usize) -> Key {
    Key::new(index % 2, 4 * index as u64)
}

impl Run {
    fn new(random: Random, count: u32) -> Self {
        Self {
            table: World::default(),
            model: Model::default(),
            tasks: tasks(count),
            words: Default::default(),
            random,
        }
    }

    fn count(&mut self) -> usize {
        match self.random.below(4) {
            0 => 1,
            1 => self.random.below(2 * BATCH_WAITERS),
            2 => usize::MAX,
            _ => self.random.below(4),
        }
    }

    fn step(&mut self) {
        match self.random.below(10) {
            0..=4 => self.enqueue(),
            5 => self.give_up(),
            6 => self.wake(),
            7 => self.wake_op(),
            _ => self.requeue(),
        }
    }

    fn enqueue(&mut self) {
        let index = self.random.below(self.tasks.len());
        let task = self.tasks[index].clone();
        if self.model.waits(task.id) {
            return;
        }
        let (at, bits) = (self.random.below(KEYS), 1 << self.random.below(3) | 8);
        let rank = [Task::FAIR, Task::FAIR, 30, 10][self.random.below(4)];
        task.own.store(rank, Relaxed);
        let value = self.words[at].value.load(Relaxed);
        let wrong = value.wrapping_add(1);
        let refused = self
            .table
            .enqueue(task.clone(), key(at), &&self.words[at], wrong, bits);
        assert_eq!(refused, Err(Refusal::Changed.into()));
        let entered = self
            .table
            .enqueue(task.clone(), key(at), &&self.words[at], value, bits);
        assert_eq!(entered, Ok(()));
        self.model.0.push(Waiting {
            id: task.id,
            key: at,
            bits,
            rank,
        });
    }

    /// A thread looks up, whether it was woken or not.
    fn give_up(&mut self) {
        let index = self.random.below(self.tasks.len());
        let task = &self.tasks[index];
        if self.model.waits(task.id) {
            assert_eq!(self.table.sleep(task, || Err(())), Err(()));
            self.model.0.retain(|one| one.id != task.id);
        }
    }

    fn wake(&mut self) {
        let (at, count) = (self.random.below(KEYS), self.count());
        let bits = [MATCH_ANY, 1, 2, 6][self.random.below(4)];
        let expected = self.model.wake(at, bits, count);
        assert_eq!(self.table.wake(key(at), bits, count), expected.len());
        self.check_woken(&expected);
    }

    fn wake_op(&mut self) {
        let (one, two) = (self.random.below(KEYS), self.random.below(KEYS));
        let counts = (self.random.below(3), self.count());
        let operand = self.random.below(3) as u32;
        // Stores the operand, and wakes the second if the word was greater than 0.
        let operation = Operation::decode(4 << 24 | operand << 12).expect("it exists");
        let word = &self.words[two];
        let old = word.value.load(Relaxed);
        let mut expected = self.model.wake(one, MATCH_ANY, counts.0);
        if old > 0 {
            expected.extend(self.model.wake(two, MATCH_ANY, counts.1));
        }
        let keys = (key(one), key(two));
        let woken = self.table.wake_op(keys, &word, &operation, counts);
        assert_eq!(woken, Ok(expected.len()));
        assert_eq!(word.value.load(Relaxed), operand);
        self.check_woken(&expected);
    }

    fn requeue(&mut self) {
        let (from, to) = (self.random.below(KEYS), self.random.below(KEYS));
        let (wake, moves) = (self.count(), self.count());
        let word = &&self.words[from];
        let wrong = word.value.load(Relaxed).wrapping_add(1);
        let keys = (key(from), key(to));
        let refused = self.table.requeue(keys, (wake, moves), Some((word, wrong)));
        assert_eq!(refused, Err(Refusal::Changed.into()));
        let expected = self.model.wake(from, MATCH_ANY, wake);
        let moved = self.model.requeue(from, to, moves);
        let done = self
            .table
            .requeue(keys, (wake, moves), Some((word, wrong - 1)));
        assert_eq!(done, Ok((expected.len(), moved)));
        self.check_woken(&expected);
    }

    /// Exactly these were woken, in this order, and know it.
    fn check_woken(&self, expected: &[u32]) {
        assert_eq!(unparked(), expected);
        for id in expected {
            let task = &self.tasks[*id as usize - 1];
            assert_eq!(self.table.sleep(task, || Err(())), Ok(()));
        }
    }
}

#[test]
fn random_histories_wake_and_move_whom_a_plain_list_would() {
    for_each_seed(150, |seed, random| {
        let count = [6, 40, 400][seed as usize % 3];
        let mut run = Run::new(random, count);
        for _ in 0..2000 {
            run.step();
        }
    });
}

/// A table in which so many wait for the first key.
fn crowd(count: u32) -> (World, Memory) {
    let (table, word) = (World::default(), Memory::default());
    for task in tasks(count) {
        let entered = table.enqueue(task, key(0), &&word, 0, MATCH_ANY);
        assert_eq!(entered, Ok(()));
    }
    (table, word)
}

const CROWD: u32 = 3 * BATCH_WAITERS as u32;

#[test]
fn more_than_one_batch_is_woken_and_moved_as_asked() {
    let batch = BATCH_WAITERS;
    for (wake, moves) in [
        (batch + 9, 5),
        (batch, batch + 5),
        (1, batch + 5),
        (batch + 9, batch),
    ] {
        let (table, word) = crowd(CROWD);
        let done = table.requeue((key(0), key(1)), (wake, moves), Some((&&word, 0)));
        assert_eq!(done, Ok((wake, moves)));
        let woken: Vec<u32> = (1..=wake as u32).collect();
        assert_eq!(unparked(), woken);
        assert_eq!(table.wake(key(1), MATCH_ANY, usize::MAX), moves);
        let first = unparked().first().copied();
        assert_eq!(first, Some(wake as u32 + 1), "the next in order were moved");
        let left = CROWD as usize - wake - moves;
        assert_eq!(table.wake(key(0), MATCH_ANY, usize::MAX), left);
        unparked();
    }
}

#[test]
fn more_than_one_batch_is_woken_by_an_operation() {
    let (table, word) = crowd(CROWD);
    let operation = Operation::decode(0).expect("it exists");
    let all = CROWD as usize;
    let keys = (key(1), key(0));
    let woken = table.wake_op(keys, &&word, &operation, (1, all - 1));
    assert_eq!(woken, Ok(all - 1));
    assert_eq!(unparked().len(), all - 1);
    let keys = (key(0), key(1));
    assert_eq!(table.wake_op(keys, &&word, &operation, (9, 9)), Ok(1));
    unparked();
}

#[test]
fn nothing_changes_when_the_page_of_a_word_is_missing() {
    let table = World::default();
    let tasks = tasks(2);
    let word = Memory::default();
    let none: Option<(&&Memory, u32)> = None;
    table
        .enqueue(tasks[0].clone(), key(0), &&word, 0, MATCH_ANY)
        .expect("it is there");
    word.is_missing.set(true);
    let missing = Stop::Fault(Missing);
    let entered = table.enqueue(tasks[1].clone(), key(0), &&word, 0, MATCH_ANY);
    assert_eq!(entered, Err(missing));
    let moved = table.requeue((key(0), key(1)), (1, 1), Some((&&word, 0)));
    assert_eq!(moved, Err(missing));
    let operation = Operation::decode(0).expect("it exists");
    let woken = table.wake_op((key(0), key(1)), &&word, &operation, (1, 1));
    assert_eq!(woken, Err(Missing));
    assert_eq!(unparked(), []);
    assert_eq!(table.requeue((key(0), key(1)), (1, 1), none), Ok((1, 0)));
}

#[test]
fn without_memory_a_thread_does_not_wait_and_none_is_moved() {
    let table = World::default();
    let tasks = tasks(2);
    let word = Memory::default();
    Heap::refuse_nth(1);
    let refused = table.enqueue(tasks[0].clone(), key(0), &&word, 0, MATCH_ANY);
    assert_eq!(refused, Err(Refusal::OutOfMemory.into()));
    Heap::refuse_none();
    table
        .enqueue(tasks[0].clone(), key(0), &&word, 0, MATCH_ANY)
        .expect("there is now");
    let none: Option<(&&Memory, u32)> = None;
    // Some of these share the bucket of the first.
    for to in 1..KEYS {
        Heap::refuse_nth(1);
        assert_eq!(table.requeue((key(0), key(to)), (0, 9), none), Ok((0, 0)));
    }
    Heap::refuse_none();
    assert_eq!(table.wake(key(0), MATCH_ANY, 9), 1);
    assert_eq!(unparked(), [1]);
}

#[test]
fn a_thread_that_is_to_be_moved_to_a_lock_is_not_woken() {
    let table = World::default();
    let tasks = tasks(1);
    let word = Memory::default();
    let from = futex::pi::Place {
        key: key(0),
        word: &word,
    };
    table
        .enqueue_for_requeue(tasks[0].clone(), &from, 0, key(1))
        .expect("it is there");
    assert_eq!(table.wake(key(0), MATCH_ANY, 9), 0);
    let none: Option<(&&Memory, u32)> = None;
    assert_eq!(table.requeue((key(0), key(1)), (9, 9), none), Ok((0, 0)));
    assert_eq!(table.sleep(&tasks[0], || Err(())), Err(()));
}
