//! Loom's locks and words.

use std::sync::{PoisonError, TryLockError};

use base::lock::{Count, Family, Flag, Lock, RwFamily};
use loom::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use loom::sync::{Mutex, MutexGuard, RwLock, RwLockReadGuard, RwLockWriteGuard};

/// The family whose orders loom tries.
#[derive(Debug)]
pub struct Watched;

/// Its lock.
#[derive(Debug)]
pub struct WatchedLock<T>(Mutex<T>);

/// Its lock that readers share.
#[derive(Debug)]
pub struct WatchedRwLock<T>(RwLock<T>);

/// Its flag.
#[derive(Default, Debug)]
pub struct WatchedFlag(AtomicBool);

/// Its number.
#[derive(Default, Debug)]
pub struct WatchedCount(AtomicUsize);

impl Family for Watched {
    type Lock<T> = WatchedLock<T>;
    type Flag = WatchedFlag;
    type Count = WatchedCount;
}

impl RwFamily for Watched {
    type RwLock<T> = WatchedRwLock<T>;
}

impl<T> Lock<T> for WatchedLock<T> {
    type Guard<'a>
        = MutexGuard<'a, T>
    where
        T: 'a;

    fn new(value: T) -> Self {
        Self(Mutex::new(value))
    }

    fn lock(&self) -> MutexGuard<'_, T> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
        match self.0.try_lock() {
            Ok(guard) => Some(guard),
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }
}

impl<T> base::lock::RwLock<T> for WatchedRwLock<T> {
    type ReadGuard<'a>
        = RwLockReadGuard<'a, T>
    where
        T: 'a;
    type WriteGuard<'a>
        = RwLockWriteGuard<'a, T>
    where
        T: 'a;

    fn new(value: T) -> Self {
        Self(RwLock::new(value))
    }

    fn read(&self) -> RwLockReadGuard<'_, T> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, T> {
        self.0.write().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Flag for WatchedFlag {
    fn get(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }

    fn set(&self, value: bool) {
        self.0.store(value, Ordering::Release);
    }

    fn swap(&self, value: bool) -> bool {
        self.0.swap(value, Ordering::SeqCst)
    }
}

impl Count for WatchedCount {
    fn get(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }

    fn set(&self, value: usize) {
        self.0.store(value, Ordering::SeqCst);
    }

    fn add(&self, value: usize) -> usize {
        self.0.fetch_add(value, Ordering::SeqCst)
    }

    fn sub(&self, value: usize) -> usize {
        self.0.fetch_sub(value, Ordering::SeqCst)
    }

    fn swap(&self, value: usize) -> usize {
        self.0.swap(value, Ordering::SeqCst)
    }

    fn exchange(&self, old: usize, new: usize) -> bool {
        self.0
            .compare_exchange(old, new, Ordering::SeqCst, Ordering::SeqCst)
            .is_ok()
    }
}
