//! A lock whose waiters sleep.
//!
//! `taken` decides who owns the value; the inner spin lock is then always free and only
//! proves to the compiler what the gate guarantees. Uncontended, lock and unlock are
//! one atomic exchange each plus a load.

use core::ops::{Deref, DerefMut};
use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use mach::sync::{Spin, SpinGuard};

use crate::wait::{Wait, WaitQueue};

/// Mutual exclusion for sections that may block.
#[derive(Default)]
pub struct Mutex<T> {
    taken: AtomicBool,
    waiters: WaitQueue,
    value: Spin<T>,
}

impl<T> Mutex<T> {
    /// An unlocked lock around `value`.
    pub const fn new(value: T) -> Self {
        Self {
            taken: AtomicBool::new(false),
            waiters: WaitQueue::new(),
            value: Spin::new(value),
        }
    }

    /// Waits for the lock, whatever signals come.
    pub fn lock(&self) -> MutexGuard<'_, T> {
        let entered = self
            .waiters
            .wait(Wait::UNINTERRUPTIBLE, || self.enter().then_some(()));
        debug_assert!(entered.is_ok(), "an uninterruptible wait has no deadline");
        MutexGuard {
            value: Some(self.value.lock()),
            lock: self,
        }
    }

    /// Takes the lock if it is free.
    pub fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
        self.enter().then(|| MutexGuard {
            value: Some(self.value.lock()),
            lock: self,
        })
    }

    fn enter(&self) -> bool {
        !self.taken.swap(true, Ordering::Acquire)
    }
}

impl<T> base::lock::Lock<T> for Mutex<T> {
    type Guard<'a>
        = MutexGuard<'a, T>
    where
        T: 'a;

    fn new(value: T) -> Self {
        Self::new(value)
    }

    fn lock(&self) -> MutexGuard<'_, T> {
        self.lock()
    }
}

/// Locks that sleep, and the words of the machine, for the mechanisms of `core/`.
pub struct Sleeping;

impl base::lock::Family for Sleeping {
    type Lock<T> = Mutex<T>;
    type Flag = AtomicBool;
    type Count = AtomicUsize;
}

/// Holds a [`Mutex`]; releases it when dropped.
pub struct MutexGuard<'a, T> {
    value: Option<SpinGuard<'a, T>>,
    lock: &'a Mutex<T>,
}

impl<T> Deref for MutexGuard<'_, T> {
    type Target = T;
    fn deref(&self) -> &T {
        match &self.value {
            Some(value) => value,
            None => unreachable!("the guard holds its value until it is dropped"),
        }
    }
}

impl<T> DerefMut for MutexGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        match &mut self.value {
            Some(value) => value,
            None => unreachable!("the guard holds its value until it is dropped"),
        }
    }
}

impl<T> Drop for MutexGuard<'_, T> {
    fn drop(&mut self) {
        self.value = None;
        self.lock.taken.store(false, Ordering::SeqCst);
        self.lock.waiters.wake_one();
    }
}
