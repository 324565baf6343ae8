//! A value that many look at and few change, behind a lock that readers share ([`spinlock`]).
//!
//! Invariant **Held**: a write guard exists alone; read guards exist beside each other only. A CPU
//! has one guard of a lock at most, and keeps it until it is dropped there.

use core::cell::UnsafeCell;
use core::fmt;
use core::marker::PhantomData;
use core::ops::{Deref, DerefMut};

use spinlock::{Family, Native, One, PerCpu, RawShared, Slots};

use super::contention;
use crate::cpu::{self, MAX_CPUS};

type Counter = <Native as Family>::Counter;

/// Shared for short sections that do not block.
pub struct Shared<T, S> {
    lock: RawShared<Native, S>,
    value: UnsafeCell<T>,
}

/// One of many locks.
pub type RwSpin<T> = Shared<T, One<Counter>>;
/// One lock of the whole machine, at which readers share no word; to change it is expensive.
pub type ReadMostly<T> = Shared<T, PerCpu<Counter, MAX_CPUS>>;

// SAFETY: **Held**: readers look at the value from several CPUs, and a writer reaches it alone.
unsafe impl<T: Send + Sync, S: Sync> Sync for Shared<T, S> {}

impl<T> RwSpin<T> {
    /// An unlocked lock around `value`.
    pub const fn new(value: T) -> Self {
        Self {
            lock: RawShared::new(One::new()),
            value: UnsafeCell::new(value),
        }
    }
}

impl<T> ReadMostly<T> {
    /// An unlocked lock around `value`.
    pub const fn new(value: T) -> Self {
        Self {
            lock: RawShared::new(PerCpu::new()),
            value: UnsafeCell::new(value),
        }
    }
}

impl<T, S: Slots<Native>> Shared<T, S> {
    /// Waits until nobody writes.
    #[inline]
    pub fn read(&self) -> ReadGuard<'_, T, S> {
        if !self.lock.try_read(cpu::id) {
            contention::wait_to_read(&self.lock, core::any::type_name::<T>());
        }
        ReadGuard {
            lock: self,
            stays_on_cpu: PhantomData,
        }
    }

    /// Waits until nobody reads or writes.
    pub fn write(&self) -> WriteGuard<'_, T, S> {
        contention::write(&self.lock, core::any::type_name::<T>());
        WriteGuard {
            lock: self,
            stays_on_cpu: PhantomData,
        }
    }
}

impl<T> base::lock::RwLock<T> for RwSpin<T> {
    type ReadGuard<'a>
        = ReadGuard<'a, T, One<Counter>>
    where
        T: 'a;
    type WriteGuard<'a>
        = WriteGuard<'a, T, One<Counter>>
    where
        T: 'a;

    fn new(value: T) -> Self {
        Self::new(value)
    }

    #[inline]
    fn read(&self) -> ReadGuard<'_, T, One<Counter>> {
        self.read()
    }

    fn write(&self) -> WriteGuard<'_, T, One<Counter>> {
        self.write()
    }
}

impl<T, S: Slots<Native>> fmt::Debug for Shared<T, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared")
            .field("written", &self.lock.is_written())
            .finish_non_exhaustive()
    }
}

/// Keeps writers out; ends that when dropped.
#[must_use = "the lock is released when the guard is dropped"]
pub struct ReadGuard<'a, T, S: Slots<Native>> {
    lock: &'a Shared<T, S>,
    stays_on_cpu: PhantomData<*const ()>,
}

impl<T, S: Slots<Native>> Deref for ReadGuard<'_, T, S> {
    type Target = T;
    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: **Held**: there are only read guards.
        unsafe { &*self.lock.value.get() }
    }
}

impl<T, S: Slots<Native>> Drop for ReadGuard<'_, T, S> {
    #[inline]
    fn drop(&mut self) {
        self.lock.lock.end_read(cpu::id);
    }
}

/// Keeps all others out; ends that when dropped.
#[must_use = "the lock is released when the guard is dropped"]
pub struct WriteGuard<'a, T, S: Slots<Native>> {
    lock: &'a Shared<T, S>,
    stays_on_cpu: PhantomData<*const ()>,
}

impl<T, S: Slots<Native>> Deref for WriteGuard<'_, T, S> {
    type Target = T;
    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: **Held**: this guard is the only one.
        unsafe { &*self.lock.value.get() }
    }
}

impl<T, S: Slots<Native>> DerefMut for WriteGuard<'_, T, S> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: **Held**: this guard is the only one.
        unsafe { &mut *self.lock.value.get() }
    }
}

impl<T, S: Slots<Native>> Drop for WriteGuard<'_, T, S> {
    fn drop(&mut self) {
        self.lock.lock.end_write();
    }
}
