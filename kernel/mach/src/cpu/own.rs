//! Values that one CPU has for itself, ready from its first instruction on.
//!
//! As [`crate::cpu::PerCpu`], without its check whether the value was made: the paths of
//! the allocator are a few instructions long. The first CPU's value is part of the image, since
//! the allocator itself is reached through it; whoever starts another CPU makes that one's
//! ([`Own::prepare`]). So there are as many values as CPUs, not as many as there could be.
//!
//! Invariant **Prepared**: a CPU runs only once its slots are filled, and they never change again.
//!
//! Invariant **Own**: a [`Private`] value is reached only by its own CPU, which is one flow of
//! control, and never from within [`Own::with`] on the same value. So the reference
//! that `with` makes is the only one.

use alloc::boxed::Box;
use core::cell::UnsafeCell;
use core::sync::atomic::{AtomicPtr, Ordering};

use super::{CpuId, MAX_CPUS};

/// Keeps the values of two CPUs in lines of their own.
#[repr(align(64))]
pub(crate) struct Line<T>(pub T);

/// A value that no other CPU looks at.
pub(crate) struct Private<T>(UnsafeCell<T>);

impl<T> Private<T> {
    pub const fn new(value: T) -> Self {
        Self(UnsafeCell::new(value))
    }
}

// SAFETY: **Own**: a value stays with its CPU.
unsafe impl<T: Send> Sync for Private<T> {}

/// One `T` for each CPU that runs.
pub(crate) struct Own<T: 'static> {
    slots: [AtomicPtr<Line<T>>; MAX_CPUS],
    make: fn() -> T,
}

impl<T: Sync> Own<T> {
    /// With the first CPU's value, and how those of the others are made; see [`own!`].
    pub const fn new(first: &'static Line<T>, make: fn() -> T) -> Self {
        let mut slots = [const { AtomicPtr::new(core::ptr::null_mut()) }; MAX_CPUS];
        slots[0] = AtomicPtr::new(core::ptr::from_ref(first).cast_mut());
        Self { slots, make }
    }

    /// Makes the value of a CPU that is about to be started. One that did not come leaves its
    /// number, and what was made for it, to the next.
    pub fn prepare(&self, cpu: CpuId) {
        let slot = &self.slots[cpu.index()];
        if slot.load(Ordering::Relaxed).is_null() {
            let value = Box::leak(Box::new(Line((self.make)())));
            slot.store(value, Ordering::Release);
        }
    }

    /// This CPU's value.
    #[inline(always)]
    pub fn get(&self) -> &T {
        // SAFETY: CPUs are numbered below `MAX_CPUS` (`arch::area::install`).
        let slot = unsafe { self.slots.get_unchecked(arch::area::cpu_index()) };
        // SAFETY: **Prepared**.
        unsafe { &(*slot.load(Ordering::Relaxed)).0 }
    }

    /// The value of a CPU that runs.
    pub fn of(&self, cpu: CpuId) -> &T {
        // SAFETY: **Prepared**: the slot is empty or filled for good.
        match unsafe { self.slots[cpu.index()].load(Ordering::Acquire).as_ref() } {
            Some(line) => &line.0,
            None => unreachable!("a CPU that runs was prepared"),
        }
    }

    /// The values of all CPUs that are prepared, by their numbers.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        let slots = self.slots.iter();
        slots.filter_map(|slot| {
            // SAFETY: **Prepared**: the slot is empty or filled for good.
            let value = unsafe { slot.load(Ordering::Acquire).as_ref() };
            value.map(|line| &line.0)
        })
    }
}

impl<T: Send> Own<Private<T>> {
    /// Uses this CPU's value. `work` must not use it again from within.
    #[inline(always)]
    pub fn with<R>(&'static self, work: impl FnOnce(&mut T) -> R) -> R {
        // SAFETY: **Own**.
        work(unsafe { &mut *self.get().0.get() })
    }
}

/// An [`Own`] whose values all start as the constant expression `$value`.
macro_rules! own {
    ($type:ty, $value:expr) => {{
        /// The value of CPU 0, where the others' copies are made from.
        static FIRST: $crate::cpu::Line<$type> = $crate::cpu::Line($value);
        $crate::cpu::Own::new(&FIRST, || $value)
    }};
}
pub(crate) use own;
