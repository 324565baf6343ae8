//! Locks, flags and counters as an argument: the machine's, or those of a model checker.
//!
//! A mechanism in `core/` that CPUs share names a [`Family`] and is run by `loom` with the very
//! code that the kernel runs (`host/models` has such families for tests).

use core::ops::{Deref, DerefMut};
use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// Mutual exclusion for a short section that does not block.
pub trait Lock<T> {
    /// Proves that the lock is held.
    type Guard<'a>: DerefMut<Target = T>
    where
        Self: 'a;

    /// An unlocked lock around `value`.
    fn new(value: T) -> Self;

    /// Waits for the lock.
    fn lock(&self) -> Self::Guard<'_>;

    /// Takes the lock if it is free.
    fn try_lock(&self) -> Option<Self::Guard<'_>>;
}

/// The same for what is looked at often and changed seldom: readers do not exclude each other. Who
/// reads does not read it once more meanwhile.
pub trait RwLock<T> {
    /// Proves that nobody writes.
    type ReadGuard<'a>: Deref<Target = T>
    where
        Self: 'a;
    /// Proves that nobody else reads or writes.
    type WriteGuard<'a>: DerefMut<Target = T>
    where
        Self: 'a;

    /// An unlocked lock around `value`.
    fn new(value: T) -> Self;

    /// Waits until nobody writes.
    fn read(&self) -> Self::ReadGuard<'_>;

    /// Waits until nobody reads or writes.
    fn write(&self) -> Self::WriteGuard<'_>;
}

/// A truth that several CPUs read and write.
pub trait Flag: Default {
    /// Reads it (acquire).
    fn get(&self) -> bool;
    /// Writes it (release).
    fn set(&self, value: bool);
    /// Writes it and returns what it was (sequentially consistent).
    fn swap(&self, value: bool) -> bool;
}

/// A number that several CPUs read and write, sequentially consistent.
pub trait Count: Default {
    /// Reads it.
    fn get(&self) -> usize;
    /// Writes it.
    fn set(&self, value: usize);
    /// Adds to it and returns what it was.
    fn add(&self, value: usize) -> usize;
    /// Subtracts from it and returns what it was.
    fn sub(&self, value: usize) -> usize;
    /// Writes it and returns what it was.
    fn swap(&self, value: usize) -> usize;
    /// Writes `new` if it is `old`; whether it was.
    fn exchange(&self, old: usize, new: usize) -> bool;
}

/// What a mechanism shares its data by.
pub trait Family: 'static {
    /// Its locks.
    type Lock<T>: Lock<T>;
    /// Its flags.
    type Flag: Flag;
    /// Its numbers.
    type Count: Count;
}

/// A family with locks that readers share.
pub trait RwFamily: Family {
    /// These locks.
    type RwLock<T>: RwLock<T>;
}

impl Flag for AtomicBool {
    #[inline(always)]
    fn get(&self) -> bool {
        self.load(Ordering::Acquire)
    }

    #[inline(always)]
    fn set(&self, value: bool) {
        self.store(value, Ordering::Release);
    }

    #[inline(always)]
    fn swap(&self, value: bool) -> bool {
        self.swap(value, Ordering::SeqCst)
    }
}

impl Count for AtomicUsize {
    #[inline(always)]
    fn get(&self) -> usize {
        self.load(Ordering::SeqCst)
    }

    #[inline(always)]
    fn set(&self, value: usize) {
        self.store(value, Ordering::SeqCst);
    }

    #[inline(always)]
    fn add(&self, value: usize) -> usize {
        self.fetch_add(value, Ordering::SeqCst)
    }

    #[inline(always)]
    fn sub(&self, value: usize) -> usize {
        self.fetch_sub(value, Ordering::SeqCst)
    }

    #[inline(always)]
    fn swap(&self, value: usize) -> usize {
        self.swap(value, Ordering::SeqCst)
    }

    #[inline(always)]
    fn exchange(&self, old: usize, new: usize) -> bool {
        self.compare_exchange(old, new, Ordering::SeqCst, Ordering::SeqCst)
            .is_ok()
    }
}
