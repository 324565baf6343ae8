//! A value for each CPU.
//!
//! It lies on the heap and is made when it is first asked for, so that there are as many as CPUs
//! that run and not as many as a machine might have.
//!
//! Invariant **Own**: a slot is reached through [`PerCpu::get`] only by its own CPU, which
//! is one flow of control (the crate's **One flow per CPU**; handlers run only while the
//! CPU is in user mode or halted). So `T` need not be `Sync` for that; [`PerCpu::of`] asks
//! for it.
//!
//! Invariant **Made**: a slot is null, or names a value that stays for good.

use alloc::boxed::Box;
use core::ptr::null_mut;
use core::sync::atomic::{AtomicPtr, Ordering};

use super::{CpuId, MAX_CPUS};

/// Keeps the values of two CPUs in lines of their own.
#[repr(align(64))]
struct Line<T>(T);

/// One `T` for each CPU, made when somebody first asks for it.
pub struct PerCpu<T> {
    slots: [AtomicPtr<Line<T>>; MAX_CPUS],
    make: fn() -> T,
}

// SAFETY: by **Own** each value stays with one CPU unless `T: Sync`.
unsafe impl<T: Send> Sync for PerCpu<T> {}

impl<T> PerCpu<T> {
    /// A value for each CPU, made by `make`. Two CPUs that first ask for the same one at once
    /// may both make it; one is dropped.
    pub const fn new(make: fn() -> T) -> Self {
        Self {
            slots: [const { AtomicPtr::new(null_mut()) }; MAX_CPUS],
            make,
        }
    }

    /// This CPU's value.
    ///
    /// The reference must be let go before the thread can leave the CPU: use it in the
    /// expression that gets it.
    #[inline]
    pub fn get(&self) -> &T {
        // SAFETY: `arch::area` gives no CPU a number beyond the last slot.
        self.value(unsafe { self.slots.get_unchecked(arch::area::cpu_index()) })
    }

    #[inline]
    fn value<'a>(&'a self, slot: &'a AtomicPtr<Line<T>>) -> &'a T {
        let mut value = slot.load(Ordering::Acquire);
        if value.is_null() {
            value = self.make(slot);
        }
        // SAFETY: **Made**.
        unsafe { &(*value).0 }
    }

    #[cold]
    fn make(&self, slot: &AtomicPtr<Line<T>>) -> *mut Line<T> {
        let made = Box::into_raw(Box::new(Line((self.make)())));
        let first = slot.compare_exchange(null_mut(), made, Ordering::AcqRel, Ordering::Acquire);
        match first {
            Ok(_) => made,
            Err(before) => {
                // SAFETY: it came from the box, and nobody else has seen it.
                drop(unsafe { Box::from_raw(made) });
                before
            }
        }
    }
}

impl<T: Sync> PerCpu<T> {
    /// The value of `cpu`.
    ///
    /// # Panics
    /// If `cpu` is not below [`MAX_CPUS`].
    #[inline]
    pub fn of(&self, cpu: CpuId) -> &T {
        self.value(&self.slots[cpu.index()])
    }
}
