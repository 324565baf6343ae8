//! Threads that only say what was done to them, and words that lie in the test.

use std::cell::{Cell, RefCell};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU32, Ordering::Relaxed};

use futex::{Host, Table, Thread, Waiter, Word};
use models::{Heap, Plain};

/// Few, so that words share them.
pub type World = Table<Kernel, 4>;

pub struct Kernel;

pub struct Task {
    pub id: u32,
    pub own: AtomicU8,
    pub lent: AtomicU8,
    waiter: Waiter<Kernel>,
}

thread_local! {
    static TASKS: RefCell<Vec<Arc<Task>>> = const { RefCell::new(Vec::new()) };
    static UNPARKED: RefCell<Vec<u32>> = const { RefCell::new(Vec::new()) };
    static CHANCES: Cell<usize> = const { Cell::new(0) };
}

/// Threads with the numbers 1 to `count` and the last rank.
pub fn tasks(count: u32) -> Vec<Arc<Task>> {
    let make = |id| {
        Arc::new(Task {
            id,
            own: AtomicU8::new(Task::FAIR),
            lent: AtomicU8::new(Task::FAIR),
            waiter: Waiter::default(),
        })
    };
    let tasks: Vec<_> = (1..=count).map(make).collect();
    TASKS.with_borrow_mut(|all| all.clone_from(&tasks));
    tasks
}

/// Who was unparked since the last call, in order.
pub fn unparked() -> Vec<u32> {
    UNPARKED.take()
}

/// How often others had a chance to run since the last call.
pub fn chances() -> usize {
    CHANCES.take()
}

impl Host for Kernel {
    type Family = Plain;
    type Memory = Heap;
    type Thread = Task;

    fn find(id: u32) -> Option<Arc<Task>> {
        TASKS.with_borrow(|all| all.iter().find(|task| task.id == id).cloned())
    }

    fn relax() {}

    fn resched_point() {
        CHANCES.set(CHANCES.get() + 1);
    }
}

impl Thread for Task {
    type Host = Kernel;
    type Rank = u8;

    const FAIR: u8 = 99;

    fn waiter(&self) -> &Waiter<Kernel> {
        &self.waiter
    }

    fn id(&self) -> u32 {
        self.id
    }

    fn rank(&self) -> u8 {
        self.own.load(Relaxed).min(self.lent.load(Relaxed))
    }

    fn lend(&self, rank: u8) {
        self.lent.store(rank, Relaxed);
    }

    fn unpark(self: &Arc<Self>) {
        UNPARKED.with_borrow_mut(|all| all.push(self.id));
    }
}

/// A word; its page may be missing.
#[derive(Default)]
pub struct Memory {
    pub value: AtomicU32,
    pub is_missing: Cell<bool>,
}

/// The page is missing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Missing;

impl Word for &Memory {
    type Fault = Missing;

    fn load(&self) -> Result<u32, Missing> {
        match self.is_missing.get() {
            true => Err(Missing),
            false => Ok(self.value.load(Relaxed)),
        }
    }

    fn compare_exchange(&self, old: u32, new: u32) -> Result<u32, Missing> {
        if self.is_missing.get() {
            return Err(Missing);
        }
        let outcome = self.value.compare_exchange(old, new, Relaxed, Relaxed);
        Ok(outcome.unwrap_or_else(|seen| seen))
    }
}
