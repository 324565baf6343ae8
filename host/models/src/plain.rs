//! The standard library's locks.

use std::sync::atomic::{AtomicBool, AtomicUsize};
use std::sync::{Mutex, MutexGuard, PoisonError};

use base::lock::{Family, Lock};

/// The family of the standard library.
#[derive(Debug)]
pub struct Plain;

/// Its lock.
#[derive(Debug)]
pub struct PlainLock<T>(Mutex<T>);

impl Family for Plain {
    type Lock<T> = PlainLock<T>;
    type Flag = AtomicBool;
    type Count = AtomicUsize;
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
}
