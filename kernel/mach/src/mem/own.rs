//! Values that one CPU has for itself, ready from the first instruction on.
//!
//! As [`crate::cpu::PerCpu`], without its check whether the value was made: the paths of
//! the allocator are a few instructions long.
//!
//! Invariant **Own**: a value is reached only by its own CPU, which is one flow of
//! control, and never from within [`Own::with`] on the same value. So the reference
//! that `with` makes is the only one.

use core::cell::UnsafeCell;

use crate::cpu::MAX_CPUS;

#[repr(align(64))]
pub(super) struct Slot<T>(UnsafeCell<T>);

impl<T> Slot<T> {
    pub const fn new(value: T) -> Self {
        Self(UnsafeCell::new(value))
    }
}

/// One `T` for each CPU.
pub(super) struct Own<T> {
    slots: [Slot<T>; MAX_CPUS],
}

// SAFETY: **Own**: a value stays with its CPU.
unsafe impl<T: Send> Sync for Own<T> {}

impl<T> Own<T> {
    /// With a value for each CPU; see [`own!`].
    pub const fn new(slots: [Slot<T>; MAX_CPUS]) -> Self {
        Self { slots }
    }

    /// Uses this CPU's value. `work` must not use it again from within.
    #[inline(always)]
    pub fn with<R>(&'static self, work: impl FnOnce(&mut T) -> R) -> R {
        let cpu = arch::area::cpu() as usize;
        // SAFETY: CPUs are numbered below `MAX_CPUS` (`arch::area::install`).
        let slot = unsafe { self.slots.get_unchecked(cpu) };
        // SAFETY: **Own**.
        work(unsafe { &mut *slot.0.get() })
    }
}

/// An [`Own`] whose values all start as the constant expression `$value`.
macro_rules! own {
    ($value:expr) => {
        Own::new([const { $crate::mem::own::Slot::new($value) }; $crate::cpu::MAX_CPUS])
    };
}
pub(super) use own;
