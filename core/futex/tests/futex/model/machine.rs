//! Threads that loom parks, and words that it watches.

use std::cell::RefCell;
use std::convert::Infallible;
use std::sync::Arc;

use futex::{Host, Table, Thread, Waiter, Word};
use loom::sync::atomic::AtomicU32;
use loom::sync::atomic::Ordering::{Relaxed, SeqCst};
use loom::sync::{Condvar, Mutex};
use models::{Heap, Watched};

/// Everything that the threads of a scene share.
pub struct Scene {
    pub table: Table<Kernel, 2>,
    pub tasks: Vec<Arc<Task>>,
    pub words: [AtomicU32; 2],
    pub inside: Inside,
}

pub struct Kernel;

pub struct Task {
    id: u32,
    waiter: Waiter<Kernel>,
    is_unparked: Mutex<bool>,
    unparked: Condvar,
}

thread_local! {
    /// Loom's threads are one thread of the system.
    static TASKS: RefCell<Vec<Arc<Task>>> = const { RefCell::new(Vec::new()) };
}

/// A scene of so many threads.
pub fn scene(count: u32) -> Arc<Scene> {
    let make = |id| {
        Arc::new(Task {
            id,
            waiter: Waiter::default(),
            is_unparked: Mutex::new(false),
            unparked: Condvar::new(),
        })
    };
    let tasks: Vec<_> = (1..=count).map(make).collect();
    TASKS.with_borrow_mut(|all| all.clone_from(&tasks));
    Arc::new(Scene {
        table: Table::default(),
        tasks,
        words: [AtomicU32::new(0), AtomicU32::new(0)],
        inside: Inside(AtomicU32::new(0)),
    })
}

impl Task {
    pub fn id(&self) -> u32 {
        self.id
    }

    /// Parks this thread each time it is called, `times` times; then its time is up.
    pub fn patience(&self, mut times: usize) -> impl FnMut() -> Result<(), ()> {
        move || {
            times = times.checked_sub(1).ok_or(())?;
            let mut is_unparked = self.is_unparked.lock().expect("no panic");
            while !*is_unparked {
                is_unparked = self.unparked.wait(is_unparked).expect("no panic");
            }
            *is_unparked = false;
            Ok(())
        }
    }
}

impl Host for Kernel {
    type Family = Watched;
    type Memory = Heap;
    type Thread = Task;

    fn find(id: u32) -> Option<Arc<Task>> {
        TASKS.with_borrow(|all| all.iter().find(|task| task.id == id).cloned())
    }

    fn relax() {
        loom::thread::yield_now();
    }

    fn resched_point() {}
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
        Self::FAIR
    }

    fn lend(&self, _rank: u8) {}

    fn unpark(self: &Arc<Self>) {
        *self.is_unparked.lock().expect("no panic") = true;
        self.unparked.notify_one();
    }
}

/// A word of the scene.
pub struct Memory<'a>(pub &'a AtomicU32);

impl Word for Memory<'_> {
    type Fault = Infallible;

    fn load(&self) -> Result<u32, Infallible> {
        Ok(self.0.load(Relaxed))
    }

    fn compare_exchange(&self, old: u32, new: u32) -> Result<u32, Infallible> {
        let outcome = self.0.compare_exchange(old, new, SeqCst, SeqCst);
        Ok(outcome.unwrap_or_else(|seen| seen))
    }
}

/// Who is inside a lock: one at most.
pub struct Inside(AtomicU32);

impl Inside {
    pub fn enter(&self) {
        assert_eq!(self.0.fetch_add(1, SeqCst), 0, "two have the lock");
    }

    pub fn leave(&self) {
        self.0.fetch_sub(1, SeqCst);
    }
}
