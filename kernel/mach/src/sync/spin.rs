//! A value behind a spin lock, whose waiters queue ([`spinlock`]).
//!
//! Invariant **Held**: between the lock's being taken and its being given back, exactly one guard
//! exists, and only it reaches `value`.

use core::cell::UnsafeCell;
use core::fmt;
use core::marker::PhantomData;
use core::ops::{Deref, DerefMut};

use spinlock::{Native, RawLock};

use super::contention;

/// Mutual exclusion for a short section that does not block.
#[derive(Default)]
pub struct Spin<T: ?Sized> {
    lock: RawLock<Native>,
    value: UnsafeCell<T>,
}

// SAFETY: **Held** lets one CPU at a time reach the value, so `Send` is enough.
unsafe impl<T: ?Sized + Send> Sync for Spin<T> {}

impl<T> Spin<T> {
    /// An unlocked lock around `value`.
    pub const fn new(value: T) -> Self {
        Self {
            lock: RawLock::new(),
            value: UnsafeCell::new(value),
        }
    }

    /// The value, when nobody else can hold the lock any more.
    pub fn into_inner(self) -> T {
        self.value.into_inner()
    }
}

impl<T: ?Sized> Spin<T> {
    /// Waits for the lock, serving other CPUs meanwhile.
    #[inline]
    pub fn lock(&self) -> SpinGuard<'_, T> {
        if !self.lock.try_lock() {
            contention::wait(&self.lock, core::any::type_name::<T>());
        }
        self.guard()
    }

    /// Takes the lock if it is free.
    #[inline]
    pub fn try_lock(&self) -> Option<SpinGuard<'_, T>> {
        // Made only if it was: dropping a guard unlocks.
        self.lock.try_lock().then(|| self.guard())
    }

    /// For who has just taken the lock.
    #[inline(always)]
    fn guard(&self) -> SpinGuard<'_, T> {
        SpinGuard {
            lock: self,
            stays_on_cpu: PhantomData,
        }
    }

    /// Whether somebody holds the lock at this moment.
    pub fn is_locked(&self) -> bool {
        self.lock.is_locked()
    }

    /// The value, by a reference that proves nobody else has one.
    pub fn get_mut(&mut self) -> &mut T {
        self.value.get_mut()
    }
}

impl<T> base::lock::Lock<T> for Spin<T> {
    type Guard<'a>
        = SpinGuard<'a, T>
    where
        T: 'a;

    fn new(value: T) -> Self {
        Self::new(value)
    }

    #[inline]
    fn lock(&self) -> SpinGuard<'_, T> {
        self.lock()
    }

    #[inline]
    fn try_lock(&self) -> Option<SpinGuard<'_, T>> {
        self.try_lock()
    }
}

impl<T: ?Sized> fmt::Debug for Spin<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Spin")
            .field("locked", &self.is_locked())
            .finish_non_exhaustive()
    }
}

impl<T: ?Sized> SpinGuard<'_, T> {
    /// Calls `work` while the lock is free for others, then waits for it again.
    pub fn unlocked<R>(&mut self, work: impl FnOnce() -> R) -> R {
        self.lock.lock.unlock();
        let done = work();
        // The new guard's part is this one's again.
        core::mem::forget(self.lock.lock());
        done
    }
}

/// Holds a [`Spin`]; releases it when dropped.
#[must_use = "the lock is released when the guard is dropped"]
pub struct SpinGuard<'a, T: ?Sized> {
    lock: &'a Spin<T>,
    stays_on_cpu: PhantomData<*const ()>,
}

// SAFETY: a shared guard only gives `&T`.
unsafe impl<T: ?Sized + Sync> Sync for SpinGuard<'_, T> {}

impl<T: ?Sized> Deref for SpinGuard<'_, T> {
    type Target = T;
    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: **Held**: this guard is the only one.
        unsafe { &*self.lock.value.get() }
    }
}

impl<T: ?Sized> DerefMut for SpinGuard<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: **Held**: this guard is the only one.
        unsafe { &mut *self.lock.value.get() }
    }
}

impl<T: ?Sized> Drop for SpinGuard<'_, T> {
    #[inline]
    fn drop(&mut self) {
        self.lock.lock.unlock();
    }
}
