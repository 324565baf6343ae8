//! Threads that loom parks, and what they wait for.

use std::cell::RefCell;
use std::sync::Arc;

use base::Instant;
use base::lock::{Family, Lock};
use loom::sync::atomic::AtomicUsize;
use loom::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use loom::sync::{Condvar, Mutex};
use models::{Heap, Watched};
use waitq::{DeadlineId, Deadlines, Gate, Host, Thread, WaitQueue};

pub struct World;

pub struct Task {
    is_unparked: Mutex<bool>,
    unparked: Condvar,
}

/// Its time is up.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TimeUp;

loom::thread_local! {
    static CURRENT: RefCell<Option<Arc<Task>>> = RefCell::new(None);
}

impl Host for World {
    type Family = Watched;
    type Memory = Heap;
    type Thread = Task;

    fn current() -> Arc<Task> {
        CURRENT.with(|current| {
            let mut current = current.borrow_mut();
            current.get_or_insert_with(Task::new).clone()
        })
    }
}

impl Task {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            is_unparked: Mutex::new(false),
            unparked: Condvar::new(),
        })
    }

    fn park(&self) {
        let mut is_unparked = self.is_unparked.lock().expect("no panic");
        while !*is_unparked {
            is_unparked = self.unparked.wait(is_unparked).expect("no panic");
        }
        *is_unparked = false;
    }
}

impl Thread for Task {
    fn unpark(self: &Arc<Self>) {
        *self.is_unparked.lock().expect("no panic") = true;
        self.unparked.notify_one();
    }
}

type LockOf<T> = <Watched as Family>::Lock<T>;

/// A store of things, and those that wait for them.
pub struct Scene {
    pub queue: WaitQueue<World>,
    things: LockOf<usize>,
    deadlines: LockOf<Deadlines<Arc<Task>>>,
    pub gate: Gate<World>,
    inside: AtomicUsize,
}

impl Scene {
    pub fn new() -> Arc<Self> {
        Arc::new(Self {
            queue: WaitQueue::default(),
            things: Lock::new(0),
            deadlines: Lock::new(Deadlines::new()),
            gate: Gate::default(),
            inside: AtomicUsize::new(0),
        })
    }

    pub fn put_one(&self) {
        *self.things.lock() += 1;
    }

    fn take_one(&self) -> Option<()> {
        let mut things = self.things.lock();
        *things = things.checked_sub(1)?;
        Some(())
    }

    /// Takes one, however long that lasts.
    pub fn take(&self) {
        let mut park = |_| {
            World::current().park();
            Ok::<(), TimeUp>(())
        };
        let taken = self.queue.wait(&mut park, &mut || self.take_one());
        assert_eq!(taken, Ok(()));
    }

    /// Takes one if there is one by now: its time is up, or a signal came.
    pub fn take_at_once(&self) -> Result<(), TimeUp> {
        let mut park = |_| Err(TimeUp);
        self.queue.wait(&mut park, &mut || self.take_one())
    }

    /// Takes one by a deadline that passes whenever [`Scene::tick`] is called.
    pub fn take_in_time(&self) -> Result<(), TimeUp> {
        let mut park = |_| {
            let me = World::current();
            let id = self.deadlines.lock().add(Instant::START, me.clone());
            me.park();
            self.cancel(id)
        };
        self.queue.wait(&mut park, &mut || self.take_one())
    }

    fn cancel(&self, id: DeadlineId) -> Result<(), TimeUp> {
        let cancelled = self.deadlines.lock().cancel(id);
        cancelled.map(drop).ok_or(TimeUp)
    }

    /// The deadline passes, if there is one.
    pub fn tick(&self) {
        let due = self.deadlines.lock().pop_due(Instant::START);
        if let Some(task) = due {
            task.unpark();
        }
    }

    /// What a waiter must not do: it looks before it enters the queue.
    pub fn take_looking_first(&self) {
        if self.take_one().is_some() {
            return;
        }
        let mut is_first = true;
        let mut park = |_| {
            World::current().park();
            Ok::<(), TimeUp>(())
        };
        let mut ready = || match std::mem::take(&mut is_first) {
            true => None,
            false => self.take_one(),
        };
        let taken = self.queue.wait(&mut park, &mut ready);
        assert_eq!(taken, Ok(()));
    }

    /// What a waiter must not do: its time is up, and it does not look once more.
    pub fn give_up_at_once(&self) {
        let mut looks = 0;
        let mut ready = || {
            looks += 1;
            if looks == 1 { self.take_one() } else { None }
        };
        let _ = self.queue.wait(&mut |_| Err(TimeUp), &mut ready);
    }

    /// Passes the gate, alone.
    pub fn pass(&self) {
        self.gate.enter(&mut |_| World::current().park());
        let inside = self.inside.load(Acquire);
        assert_eq!(inside, 0, "one at a time");
        self.inside.store(1, Relaxed);
        self.inside.store(0, Release);
        self.gate.leave();
    }
}
