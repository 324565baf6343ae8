//! The standard library's locks.

use std::sync::atomic::{AtomicBool, AtomicUsize};
use std::sync::{
    Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard, TryLockError,
};

use base::lock::{Family, Lock, RwFamily};

/// The family of the standard library.
#[derive(Debug)]
pub struct Plain;

/// Its lock.
#[derive(Debug)]
pub struct PlainLock<T>(Mutex<T>);

/// Its lock that readers share.
#[derive(Debug)]
pub struct PlainRwLock<T>(RwLock<T>);

impl Family for Plain {
    type Lock<T> = PlainLock<T>;
    type Flag = AtomicBool;
    type Count = AtomicUsize;
}

impl RwFamily for Plain {
    type RwLock<T> = PlainRwLock<T>;
}

impl<T> Lock<T> for PlainLock<T> {
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

impl<T> base::lock::RwLock<T> for PlainRwLock<T> {
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
