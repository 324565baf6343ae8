//! Files whose readiness a test sets, and threads that only count.

use std::cell::RefCell;
use std::marker::PhantomData;
use std::sync::{Arc, Weak};

use base::lock::{Count, Family, Lock};
use epoll::{Entry, Events, Host, Observers, Open, Set, Sharing, Waiters};
use models::Heap;

/// A kernel whose locks are those of `F`.
pub struct Kernel<F>(PhantomData<F>);

pub type World<F> = Arc<Set<Kernel<F>>>;

impl<F: Family> Host for Kernel<F> {
    type Family = F;
    type Memory = Heap;
    type Open = File<F>;
    type Waiters = Sleepers<F>;

    fn resched_point() {}
}

/// A file, or a set as a file.
pub struct File<F: Family> {
    ready: F::Count,
    observers: F::Lock<Observers<Entry<Kernel<F>>>>,
    set: Option<World<F>>,
}

impl<F: Family> File<F> {
    pub fn new() -> Arc<Self> {
        Arc::new(Self {
            ready: F::Count::default(),
            observers: Lock::new(Observers::new()),
            set: None,
        })
    }

    /// The file of a set.
    pub fn of(set: &World<F>) -> Arc<Self> {
        Arc::new(Self {
            ready: F::Count::default(),
            observers: Lock::new(Observers::new()),
            set: Some(set.clone()),
        })
    }

    /// What is true from now on, without a word to anybody.
    pub fn set_ready(&self, events: Events) {
        self.ready.set(events.bits() as usize);
    }

    /// How many hear of its changes.
    pub fn observers(&self) -> usize {
        self.observers.lock().len()
    }

    /// The entry that has observed it longest.
    pub fn first_observer(&self) -> Option<Arc<Entry<Kernel<F>>>> {
        let first = RefCell::new(None);
        let observers = self.observers.lock();
        observers.notify(Events::ALWAYS, |entry| {
            first.borrow_mut().get_or_insert(entry);
            false
        });
        first.into_inner()
    }

    /// Something changed: those who watch for `events` hear of it.
    pub fn notify(&self, events: Events) {
        let observers = self.observers.lock();
        observers.notify(events, |entry| entry.notify(events));
    }
}

impl<F: Family> Open<Kernel<F>> for File<F> {
    fn poll(&self, _interest: Events) -> Events {
        match &self.set {
            Some(set) if set.has_ready() => Events::READABLE,
            Some(_) => Events::empty(),
            None => Events::from_bits_truncate(self.ready.get() as u32),
        }
    }

    fn observe(&self, entry: Weak<Entry<Kernel<F>>>, interest: Events, sharing: Sharing) {
        match &self.set {
            Some(set) => &set.waiters.observers,
            None => &self.observers,
        }
        .lock()
        .observe(entry, interest, sharing);
    }

    fn change_interest(&self, entry: Weak<Entry<Kernel<F>>>, interest: Events) {
        self.observers.lock().change_interest(&entry, interest);
    }

    fn forget(&self, entry: Weak<Entry<Kernel<F>>>) {
        self.observers.lock().forget(&entry);
    }

    fn nested(&self) -> Option<World<F>> {
        self.set.clone()
    }
}

/// Threads that wait for a set: so many, of whom some were woken.
pub struct Sleepers<F: Family> {
    waiting: F::Lock<usize>,
    observers: F::Lock<Observers<Entry<Kernel<F>>>>,
}

impl<F: Family> Default for Sleepers<F> {
    fn default() -> Self {
        Self {
            waiting: Lock::new(0),
            observers: Lock::new(Observers::new()),
        }
    }
}

impl<F: Family> Sleepers<F> {
    /// A thread enters the queue, looks, and sleeps unless `is_worth_it`.
    pub fn queue(&self, is_worth_it: impl Fn() -> bool) {
        *self.waiting.lock() += 1;
        if is_worth_it() {
            let mut waiting = self.waiting.lock();
            *waiting = waiting.saturating_sub(1);
        }
    }

    /// How many sleep whom nobody has woken.
    pub fn asleep(&self) -> usize {
        *self.waiting.lock()
    }
}

impl<F: Family> Waiters for Sleepers<F> {
    fn wake_one(&self) -> bool {
        let mut waiting = self.waiting.lock();
        let is_one = *waiting != 0;
        *waiting -= usize::from(is_one);
        is_one
    }

    fn notify_observers(&self) {
        let observers = self.observers.lock();
        observers.notify(Events::READABLE, |entry| entry.notify(Events::READABLE));
    }
}
