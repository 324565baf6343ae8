//! Locks with priority inheritance, beside a world that computes all ranks anew each time.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use crate::world::{Memory, Missing, Task, World, tasks, unparked};
use futex::pi::{Attempt, Contended, Moved, OWNER_DIED, Place, TID_MASK, WAITERS};
use futex::{Key, Refusal, Stop, Thread};
use models::{Heap, Random, for_each_seed};

const LOCKS: usize = 4;
const RANKS: [u8; 4] = [Task::FAIR, 40, 20, 10];

/// What a thread does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    Runs,
    Waits(usize),
    /// It waits for the condition, to be moved to the lock.
    ForCondition(usize),
    Dead,
}

struct Run {
    table: World,
    tasks: Vec<Arc<Task>>,
    states: Vec<State>,
    /// Who has which lock, by index.
    owners: [Option<usize>; LOCKS],
    words: [Memory; LOCKS],
    condition: Memory,
    /// Who waits for the condition as they came, with the rank they came with.
    queue: Vec<(u8, usize)>,
    random: Random,
}

fn key(lock: usize) -> Key {
    Key::new(1, 4 * lock as u64)
}

const CONDITION: usize = LOCKS;

impl Run {
    fn new(random: Random, count: u32) -> Self {
        let tasks = tasks(count);
        Self {
            table: World::default(),
            states: vec![State::Runs; tasks.len()],
            tasks,
            owners: [None; LOCKS],
            words: Default::default(),
            condition: Memory::default(),
            queue: Vec::new(),
            random,
        }
    }

    fn step(&mut self) {
        let who = self.random.below(self.tasks.len());
        let lock = self.random.below(LOCKS);
        match (self.random.below(20), self.states[who]) {
            (0..=8, State::Runs) => self.lock(who, lock),
            (9..=11, State::Runs) => self.unlock(who, lock),
            (12, State::Runs) => self.wait_for_condition(who, lock),
            (13, State::Runs) => self.signal(lock),
            (14, State::Runs) if self.random.once_in(8) => self.die(who),
            (15..=16, State::Waits(_) | State::ForCondition(_)) => self.give_up(who),
            (17..=18, state) if state != State::Dead => self.change_rank(who),
            _ => {}
        }
        self.check();
    }

    /// Who waits, at last, for whom.
    fn waits_for(&self, who: usize, other: usize) -> bool {
        match self.states[who] {
            _ if who == other => true,
            State::Waits(lock) => {
                let owner = self.owners[lock].expect("somebody waits");
                self.waits_for(owner, other)
            }
            _ => false,
        }
    }

    fn lock(&mut self, who: usize, lock: usize) {
        let word = &&self.words[lock];
        let me = &self.tasks[who];
        let contended = match self.random.once_in(5) {
            true => Contended::Fail,
            false => Contended::Queue,
        };
        let outcome = self.table.lock_pi(me, key(lock), word, contended);
        let expected = match self.owners[lock] {
            None => Ok(Attempt::Taken),
            Some(owner) if owner == who => Err(Refusal::Deadlock.into()),
            Some(_) if contended == Contended::Fail => Err(Refusal::Taken.into()),
            Some(owner) if self.waits_for(owner, who) => Err(Refusal::Deadlock.into()),
            Some(_) => Ok(Attempt::Queued),
        };
        assert_eq!(outcome, expected);
        match outcome {
            Ok(Attempt::Taken) => self.owners[lock] = Some(who),
            Ok(Attempt::Queued) => self.states[who] = State::Waits(lock),
            Err(_) => {}
        }
    }

    fn unlock(&mut self, who: usize, lock: usize) {
        let word = &&self.words[lock];
        let outcome = self.table.unlock_pi(&self.tasks[who], key(lock), word);
        if self.owners[lock] != Some(who) {
            assert_eq!(outcome, Err(Refusal::NotOwner.into()));
            return;
        }
        assert_eq!(outcome, Ok(()));
        self.pass(lock);
    }

    /// The lock is given up: one of the best who wait has it now.
    fn pass(&mut self, lock: usize) {
        let waiting = self.waiting(lock);
        let woken = unparked();
        assert_eq!(woken.len(), waiting.len().min(1));
        self.owners[lock] = None;
        if let Some(id) = woken.first() {
            self.receive(*id as usize - 1, lock, &waiting);
            let end = self
                .table
                .sleep_for_lock(&self.tasks[*id as usize - 1], || Err(()));
            assert_eq!(end, Ok(()));
        }
    }

    /// `next` was given the lock; it was one of the best of `waiting`.
    fn receive(&mut self, next: usize, lock: usize, waiting: &[usize]) {
        let ranks = self.effective();
        assert!(waiting.iter().all(|other| ranks[next] <= ranks[*other]));
        assert_eq!(self.states[next], State::Waits(lock));
        self.states[next] = State::Runs;
        self.owners[lock] = Some(next);
    }

    fn waiting(&self, lock: usize) -> Vec<usize> {
        let all = 0..self.tasks.len();
        all.filter(|who| self.states[*who] == State::Waits(lock))
            .collect()
    }

    fn give_up(&mut self, who: usize) {
        let me = &self.tasks[who];
        match self.states[who] {
            State::Waits(_) if self.random.once_in(2) => {
                assert_eq!(self.table.sleep_for_lock(me, || Err(5)), Err(5));
            }
            State::Waits(_) => {
                let outcome = self.table.sleep_for_requeue(me, key(CONDITION), || Err(5));
                assert_eq!(outcome, Moved::GaveUpLock(5));
            }
            _ => {
                let outcome = self.table.sleep_for_requeue(me, key(CONDITION), || Err(5));
                assert_eq!(outcome, Moved::NotYet(5));
            }
        }
        self.states[who] = State::Runs;
        self.queue.retain(|(_, other)| *other != who);
    }

    fn wait_for_condition(&mut self, who: usize, lock: usize) {
        let from = Place {
            key: key(CONDITION),
            word: &self.condition,
        };
        let me = self.tasks[who].clone();
        let entered = self.table.enqueue_for_requeue(me, &from, 0, key(lock));
        assert_eq!(entered, Ok(()));
        self.states[who] = State::ForCondition(lock);
        self.queue.push((self.tasks[who].rank(), who));
    }

    /// Moves who waits for the condition to the lock: the first has it if it is free.
    fn signal(&mut self, lock: usize) {
        let from = Place {
            key: key(CONDITION),
            word: &self.condition,
        };
        let to = Place {
            key: key(lock),
            word: &self.words[lock],
        };
        let mut moved = 0;
        let limit = 1 + self.random.below(4);
        let changed = self.table.requeue_pi(&from, 1, &to, limit, &mut moved);
        assert_eq!((changed, moved), (Err(Refusal::Changed.into()), 0));
        let outcome = self.table.requeue_pi(&from, 0, &to, limit, &mut moved);
        let (expected, refusal) = self.expect_signal(lock, limit);
        assert_eq!(moved, expected);
        assert_eq!(
            outcome,
            refusal.map_or(Ok(()), |refusal| Err(Stop::from(refusal)))
        );
    }

    /// What a signal does: how many are moved, and why the first is not.
    fn expect_signal(&mut self, lock: usize, limit: usize) -> (usize, Option<Refusal>) {
        self.queue.sort_by_key(|(rank, _)| *rank);
        let mut woken = unparked().into_iter();
        for moved in 0..limit {
            let Some(&(_, who)) = self.queue.first() else {
                return (moved, None);
            };
            let refusal = match self.owners[lock] {
                _ if self.states[who] != State::ForCondition(lock) => Refusal::Inconsistent,
                Some(owner) if self.waits_for(owner, who) => Refusal::Deadlock,
                Some(_) => {
                    self.states[who] = State::Waits(lock);
                    self.queue.remove(0);
                    continue;
                }
                None => {
                    assert_eq!(woken.next(), Some(self.tasks[who].id));
                    self.states[who] = State::Runs;
                    self.owners[lock] = Some(who);
                    self.queue.remove(0);
                    continue;
                }
            };
            return (moved, Some(refusal).filter(|_| moved == 0));
        }
        (limit, None)
    }

    fn change_rank(&mut self, who: usize) {
        let rank = RANKS[self.random.below(RANKS.len())];
        self.tasks[who].own.store(rank, Relaxed);
        self.table.note_rank(&self.tasks[who]);
    }

    /// A thread ends; its robust list may have marked its words before.
    fn die(&mut self, who: usize) {
        let me = self.tasks[who].clone();
        self.states[who] = State::Dead;
        let owned = (0..LOCKS).filter(|lock| self.owners[*lock] == Some(who));
        let owned: Vec<usize> = owned.collect();
        let is_marked = self.random.once_in(2);
        for lock in &owned {
            let word = &self.words[*lock].value;
            if is_marked || self.waiting(*lock).is_empty() {
                word.store(OWNER_DIED | word.load(Relaxed) & WAITERS, Relaxed);
            }
        }
        self.table.release_all(&me, true);
        let woken = unparked();
        for lock in owned {
            let waiting = self.waiting(lock);
            self.owners[lock] = None;
            let next = woken.iter().map(|id| *id as usize - 1);
            let next: Vec<usize> = next.filter(|who| waiting.contains(who)).collect();
            assert_eq!(next.len(), waiting.len().min(1));
            if let Some(next) = next.first() {
                self.receive(*next, lock, &waiting);
                self.write(*next, lock);
            }
        }
    }

    /// `who` writes its number into the word of a lock that it got from a dead one, unless the
    /// word is not there: then the next one has it.
    fn write(&mut self, who: usize, lock: usize) {
        let word = &self.words[lock];
        word.is_missing.set(self.random.once_in(3));
        let written = self.table.write_number(&self.tasks[who], &word);
        if !word.is_missing.replace(false) {
            assert_eq!(written, Ok(()));
            let seen = word.value.load(Relaxed);
            assert_eq!(seen, OWNER_DIED | WAITERS | self.tasks[who].id);
            return;
        }
        assert_eq!(written, Err(Missing));
        self.table.release_unwritten(&self.tasks[who]);
        let waiting = self.waiting(lock);
        self.owners[lock] = None;
        let woken = unparked();
        assert_eq!(woken.len(), waiting.len().min(1));
        match woken.first() {
            Some(id) => {
                self.receive(*id as usize - 1, lock, &waiting);
                self.write(*id as usize - 1, lock);
            }
            None => self.words[lock].value.store(OWNER_DIED, Relaxed),
        }
    }

    /// All ranks, from what threads have and who waits for whom.
    fn effective(&self) -> Vec<u8> {
        let mut ranks: Vec<u8> = self
            .tasks
            .iter()
            .map(|task| task.own.load(Relaxed))
            .collect();
        for _ in 0..self.tasks.len() {
            for who in 0..self.tasks.len() {
                if let State::Waits(lock) = self.states[who]
                    && let Some(owner) = self.owners[lock]
                {
                    ranks[owner] = ranks[owner].min(ranks[who]);
                }
            }
        }
        ranks
    }

    fn check(&self) {
        let ranks = self.effective();
        for (task, rank) in self.tasks.iter().zip(&ranks) {
            assert_eq!(task.rank(), *rank, "thread {}", task.id);
        }
        for (word, owner) in self.words.iter().zip(self.owners) {
            let seen = word.value.load(Relaxed) & TID_MASK;
            assert_eq!(seen, owner.map_or(0, |who| self.tasks[who].id));
        }
    }
}

#[test]
fn in_random_histories_every_owner_is_lent_what_waits_for_it_at_last() {
    for_each_seed(300, |seed, random| {
        let mut run = Run::new(random, 3 + (seed % 8) as u32);
        for _ in 0..1500 {
            run.step();
        }
    });
}

#[test]
fn equals_get_the_lock_as_they_came_and_better_ones_before() {
    let table = World::default();
    let tasks = tasks(5);
    let word = Memory::default();
    for (task, rank) in tasks.iter().zip([Task::FAIR, 40, 40, 10, Task::FAIR]) {
        task.own.store(rank, Relaxed);
        table
            .lock_pi(task, key(0), &&word, Contended::Queue)
            .expect("no circle");
    }
    let mut order = vec![1];
    while let Some(owner) = order.last().copied().filter(|_| order.len() < 5) {
        let owner = &tasks[owner as usize - 1];
        table.unlock_pi(owner, key(0), &&word).expect("it has it");
        order.extend(unparked());
    }
    assert_eq!(order, [1, 4, 2, 3, 5]);
}

#[test]
fn a_lock_whose_word_names_nobody_is_refused() {
    let table = World::default();
    let tasks = tasks(2);
    let word = Memory::default();
    word.value.store(77, Relaxed);
    let lock = |who: usize| table.lock_pi(&tasks[who], key(0), &&word, Contended::Queue);
    assert_eq!(lock(0), Err(Refusal::NoOwner.into()));
    word.value.store(tasks[1].id, Relaxed);
    table.release_all(&tasks[1], true);
    assert_eq!(lock(0), Err(Refusal::NoOwner.into()));
}

#[test]
fn a_program_that_is_replaced_can_have_locks_again() {
    let table = World::default();
    let tasks = tasks(2);
    let word = Memory::default();
    table.release_all(&tasks[1], false);
    word.value.store(tasks[1].id, Relaxed);
    let lock = table.lock_pi(&tasks[0], key(0), &&word, Contended::Queue);
    assert_eq!(lock, Ok(Attempt::Queued));
}

#[test]
fn a_word_that_a_program_changed_behind_the_owner_is_refused() {
    let table = World::default();
    let tasks = tasks(4);
    let word = Memory::default();
    let lock = |who: usize| table.lock_pi(&tasks[who], key(0), &&word, Contended::Queue);
    assert_eq!(lock(0), Ok(Attempt::Taken));
    assert_eq!(lock(1), Ok(Attempt::Queued));
    word.value.store(tasks[2].id, Relaxed);
    assert_eq!(lock(3), Err(Refusal::Inconsistent.into()));
    let unlock = table.unlock_pi(&tasks[2], key(0), &&word);
    assert_eq!(unlock, Err(Refusal::Inconsistent.into()));
}

#[test]
fn without_memory_nobody_waits_and_nobody_is_lent() {
    let tasks = tasks(2);
    tasks[1].own.store(10, Relaxed);
    for nth in 1..=4 {
        let table = World::default();
        let word = Memory::default();
        word.value.store(tasks[0].id, Relaxed);
        Heap::refuse_nth(nth);
        let lock = table.lock_pi(&tasks[1], key(0), &&word, Contended::Queue);
        Heap::refuse_none();
        if lock.is_ok() {
            assert_eq!(tasks[0].rank(), 10);
            assert_eq!(table.sleep_for_lock(&tasks[1], || Err(())), Err(()));
        } else {
            assert_eq!(lock, Err(Refusal::OutOfMemory.into()));
        }
        assert_eq!(tasks[0].rank(), Task::FAIR);
    }
}
