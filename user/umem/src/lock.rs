//! A lock for short sections: one atomic when nobody waits, a futex when somebody does.

use core::cell::UnsafeCell;
use core::ops::{Deref, DerefMut};
use core::ptr;
use core::sync::atomic::{AtomicU32, Ordering};

use crate::settings;

const FREE: u32 = 0;
const HELD: u32 = 1;
const AWAITED: u32 = 2;
/// Sections are short: looking again is cheaper than sleeping.
const LOOKS: u32 = 100;

/// A value that one thread at a time may use.
pub struct Lock<T> {
    state: AtomicU32,
    value: UnsafeCell<T>,
}

// SAFETY: the lock lets one thread at a time use the value.
unsafe impl<T: Send> Sync for Lock<T> {}

/// The right to use the value.
pub struct Guard<'a, T> {
    lock: &'a Lock<T>,
}

impl<T> Lock<T> {
    pub const fn new(value: T) -> Self {
        Self {
            state: AtomicU32::new(FREE),
            value: UnsafeCell::new(value),
        }
    }

    #[inline]
    pub fn lock(&self) -> Guard<'_, T> {
        self.acquire();
        Guard { lock: self }
    }

    /// As [`Lock::lock`], and whether another thread had it.
    #[inline]
    pub fn lock_noting(&self) -> (Guard<'_, T>, bool) {
        let was_free = self.change(FREE, HELD);
        if !was_free {
            self.wait();
        }
        (Guard { lock: self }, !was_free)
    }

    /// Whether nobody has it, at this moment.
    pub fn is_free(&self) -> bool {
        self.state.load(Ordering::Relaxed) == FREE
    }

    /// Takes the lock without a guard, for `fork`.
    #[inline]
    pub fn acquire(&self) {
        if !self.change(FREE, HELD) {
            self.wait();
        }
    }

    /// Ends what [`Lock::acquire`] began.
    #[inline]
    pub fn release(&self) {
        if self.state.swap(FREE, Ordering::Release) == AWAITED {
            self.futex(libc::FUTEX_WAKE, 1);
        }
    }

    /// The value, for who took the lock without a guard.
    ///
    /// # Safety
    /// The lock is held by [`Lock::acquire`].
    pub unsafe fn held(&self) -> &T {
        // SAFETY: the caller holds the lock.
        unsafe { &*self.value.get() }
    }

    fn change(&self, from: u32, to: u32) -> bool {
        self.state
            .compare_exchange(from, to, Ordering::Acquire, Ordering::Relaxed)
            .is_ok()
    }

    #[cold]
    fn wait(&self) {
        // Where one thread runs at a time, nobody lets go while we look.
        let looks = if settings::is_alone() { 0 } else { LOOKS };
        for _ in 0..looks {
            if self.state.load(Ordering::Relaxed) == FREE && self.change(FREE, HELD) {
                return;
            }
            core::hint::spin_loop();
        }
        while self.state.swap(AWAITED, Ordering::Acquire) != FREE {
            self.futex(libc::FUTEX_WAIT, AWAITED);
        }
    }

    fn futex(&self, operation: i32, value: u32) {
        let operation = operation | libc::FUTEX_PRIVATE_FLAG;
        let none = ptr::null::<libc::timespec>();
        // SAFETY: the word outlives the call, and errno is restored for malloc's callers.
        unsafe {
            let errno = *libc::__errno_location();
            libc::syscall(libc::SYS_futex, self.state.as_ptr(), operation, value, none);
            *libc::__errno_location() = errno;
        }
    }
}

impl<T> Deref for Guard<'_, T> {
    type Target = T;
    fn deref(&self) -> &T {
        // SAFETY: the guard exists only while this thread holds the lock.
        unsafe { &*self.lock.value.get() }
    }
}

impl<T> DerefMut for Guard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: as in `deref`.
        unsafe { &mut *self.lock.value.get() }
    }
}

impl<T> Drop for Guard<'_, T> {
    #[inline]
    fn drop(&mut self) {
        self.lock.release();
    }
}
