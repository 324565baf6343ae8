//! A lock whose waiters sleep.
//!
//! The gate (`waitq`) decides who owns the value; the inner spin lock is then always free and only
//! proves to the compiler what the gate guarantees. Uncontended, lock and unlock are
//! one atomic exchange each plus a load.

use core::ops::{Deref, DerefMut};
use core::sync::atomic::{AtomicBool, AtomicUsize};

use mach::sync::{Spin, SpinGuard};
use waitq::Gate;

use crate::wait::{Kernel, Wait, empty};

/// Mutual exclusion for sections that may block.
pub struct Mutex<T> {
    gate: Gate<Kernel>,
    value: Spin<T>,
}

impl<T: Default> Default for Mutex<T> {
    fn default() -> Self {
        Self::new(T::default())
    }
}

impl<T> Mutex<T> {
    /// An unlocked lock around `value`.
    pub const fn new(value: T) -> Self {
        Self {
            gate: Gate::new(AtomicBool::new(false), empty()),
            value: Spin::new(value),
        }
    }

    /// Waits for the lock, whatever signals come.
    #[inline]
    pub fn lock(&self) -> MutexGuard<'_, T> {
        self.gate.enter(&mut |parking| {
            let parked = Wait::UNINTERRUPTIBLE.park(parking);
            debug_assert!(parked.is_ok(), "an uninterruptible wait has no deadline");
        });
        MutexGuard {
            value: Some(self.value.lock()),
            lock: self,
        }
    }

    /// Takes the lock if it is free.
    #[inline]
    pub fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
        self.gate.try_enter().then(|| MutexGuard {
            value: Some(self.value.lock()),
            lock: self,
        })
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

    #[inline]
    fn lock(&self) -> MutexGuard<'_, T> {
        self.lock()
    }

    #[inline]
    fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
        self.try_lock()
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
    #[inline]
    fn drop(&mut self) {
        self.value = None;
        self.lock.gate.leave();
    }
}
