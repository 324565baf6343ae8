//! Threads of a test: each knows how often it was woken.

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use models::{Heap, Plain};
use waitq::{Host, Thread};

pub struct World;

pub struct Task {
    pub woken: AtomicUsize,
}

thread_local! {
    static CURRENT: RefCell<Option<Arc<Task>>> = const { RefCell::new(None) };
}

impl Task {
    pub fn new(_: u32) -> Arc<Self> {
        Arc::new(Self {
            woken: AtomicUsize::new(0),
        })
    }

    /// It runs from now on.
    pub fn run(self: &Arc<Self>) {
        CURRENT.set(Some(self.clone()));
    }

    pub fn woken(&self) -> usize {
        self.woken.load(Relaxed)
    }
}

impl Thread for Task {
    fn unpark(self: &Arc<Self>) {
        self.woken.fetch_add(1, Relaxed);
    }
}

impl Host for World {
    type Family = Plain;
    type Memory = Heap;
    type Thread = Task;

    fn current() -> Arc<Task> {
        CURRENT.with_borrow(|task| task.clone().expect("somebody runs"))
    }
}
