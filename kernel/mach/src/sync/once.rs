//! A cell that is written once.
//!
//! Invariant **Written**: `state` is `READY` only after `value` was initialised, and then
//! neither changes until the cell is dropped.

use core::cell::UnsafeCell;
use core::fmt;
use core::mem::MaybeUninit;
use core::sync::atomic::{AtomicU8, Ordering};

const EMPTY: u8 = 0;
const WRITING: u8 = 1;
const READY: u8 = 2;

/// A value that is set once, usually at boot, and only read afterwards.
pub struct Once<T> {
    state: AtomicU8,
    value: UnsafeCell<MaybeUninit<T>>,
}

// SAFETY: one CPU writes before `READY`, all read after it (**Written**).
unsafe impl<T: Send + Sync> Sync for Once<T> {}

impl<T> Once<T> {
    /// An empty cell.
    pub const fn new() -> Self {
        Self {
            state: AtomicU8::new(EMPTY),
            value: UnsafeCell::new(MaybeUninit::uninit()),
        }
    }

    /// The value, if it was set.
    #[inline]
    pub fn get(&self) -> Option<&T> {
        if self.state.load(Ordering::Acquire) != READY {
            return None;
        }
        // SAFETY: **Written**.
        Some(unsafe { (*self.value.get()).assume_init_ref() })
    }

    /// The value, made by `make` if this is the first call. Others wait for it.
    #[inline]
    pub fn call_once(&self, make: impl FnOnce() -> T) -> &T {
        match self.get() {
            Some(value) => value,
            None => self.fill(make),
        }
    }

    /// Sets the value; gives it back if there is one already.
    pub fn set(&self, value: T) -> Result<(), T> {
        let mut spare = Some(value);
        self.call_once(|| match spare.take() {
            Some(value) => value,
            None => unreachable!("the closure runs once"),
        });
        spare.map_or(Ok(()), Err)
    }

    #[cold]
    fn fill(&self, make: impl FnOnce() -> T) -> &T {
        let claim =
            self.state
                .compare_exchange(EMPTY, WRITING, Ordering::Acquire, Ordering::Relaxed);
        if claim.is_ok() {
            let value = make();
            // SAFETY: only the winner of the exchange writes, and readers wait for READY.
            unsafe { (*self.value.get()).write(value) };
            self.state.store(READY, Ordering::Release);
        }
        loop {
            if let Some(value) = self.get() {
                return value;
            }
            crate::cpu::relax();
        }
    }
}

impl<T> Default for Once<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T: fmt::Debug> fmt::Debug for Once<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Once").field(&self.get()).finish()
    }
}

impl<T> Drop for Once<T> {
    fn drop(&mut self) {
        if *self.state.get_mut() == READY {
            // SAFETY: **Written**, and `&mut self` excludes readers.
            unsafe { self.value.get_mut().assume_init_drop() };
        }
    }
}
