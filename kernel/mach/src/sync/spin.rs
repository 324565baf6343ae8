//! A test-and-test-and-set spin lock.
//!
//! Invariant **Held**: between a successful exchange of `locked` to true and its store of
//! false, exactly one guard exists, and only it reaches `value`.

use core::cell::UnsafeCell;
use core::fmt;
use core::marker::PhantomData;
use core::ops::{Deref, DerefMut};
use core::sync::atomic::{AtomicBool, Ordering};

/// Mutual exclusion for a short section that does not block.
#[derive(Default)]
pub struct Spin<T: ?Sized> {
    locked: AtomicBool,
    value: UnsafeCell<T>,
}

// SAFETY: **Held** lets one CPU at a time reach the value, so `Send` is enough.
unsafe impl<T: ?Sized + Send> Sync for Spin<T> {}

impl<T> Spin<T> {
    /// An unlocked lock around `value`.
    pub const fn new(value: T) -> Self {
        Self {
            locked: AtomicBool::new(false),
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
        loop {
            if let Some(guard) = self.try_lock() {
                return guard;
            }
            self.wait();
        }
    }

    #[cold]
    fn wait(&self) {
        while self.is_locked() {
            crate::cpu::relax();
        }
    }

    /// Takes the lock if it is free.
    #[inline]
    pub fn try_lock(&self) -> Option<SpinGuard<'_, T>> {
        let free = self
            .locked
            .compare_exchange(false, true, Ordering::Acquire, Ordering::Relaxed);
        // Made only now: dropping a guard unlocks.
        free.is_ok().then(|| SpinGuard {
            lock: self,
            stays_on_cpu: PhantomData,
        })
    }

    /// Whether somebody holds the lock at this moment.
    pub fn is_locked(&self) -> bool {
        self.locked.load(Ordering::Relaxed)
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
        self.lock.locked.store(false, Ordering::Release);
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
        self.lock.locked.store(false, Ordering::Release);
    }
}
