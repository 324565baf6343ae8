//! A value for each CPU.
//!
//! Invariant **Own**: a slot is reached through [`PerCpu::get`] only by its own CPU, which
//! is one flow of control (the crate's **One flow per CPU**; handlers run only while the
//! CPU is in user mode or halted). So `T` need not be `Sync` for that; [`PerCpu::of`] asks
//! for it.

use core::cell::UnsafeCell;
use core::mem::MaybeUninit;
use core::sync::atomic::{AtomicU8, Ordering};

use super::{CpuId, MAX_CPUS};

const EMPTY: u8 = 0;
const MAKING: u8 = 1;
const READY: u8 = 2;

#[repr(align(64))]
struct Slot<T> {
    state: AtomicU8,
    value: UnsafeCell<MaybeUninit<T>>,
}

/// One `T` for each CPU, made when that CPU first asks.
pub struct PerCpu<T> {
    slots: [Slot<T>; MAX_CPUS],
    make: fn() -> T,
}

// SAFETY: by **Own** each value stays with one CPU unless `T: Sync`.
unsafe impl<T: Send> Sync for PerCpu<T> {}

impl<T> PerCpu<T> {
    /// A value for each CPU, made by `make`.
    pub const fn new(make: fn() -> T) -> Self {
        Self {
            slots: [const {
                Slot {
                    state: AtomicU8::new(EMPTY),
                    value: UnsafeCell::new(MaybeUninit::uninit()),
                }
            }; MAX_CPUS],
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
        self.value(unsafe { self.slots.get_unchecked(super::id().index()) })
    }

    #[inline]
    fn value<'a>(&'a self, slot: &'a Slot<T>) -> &'a T {
        if slot.state.load(Ordering::Acquire) != READY {
            self.make(slot);
        }
        // SAFETY: the slot is READY, hence initialised, and never changes again as a whole.
        unsafe { (*slot.value.get()).assume_init_ref() }
    }

    #[cold]
    fn make(&self, slot: &Slot<T>) {
        let won = slot
            .state
            .compare_exchange(EMPTY, MAKING, Ordering::Acquire, Ordering::Relaxed);
        if won.is_ok() {
            let value = (self.make)();
            // SAFETY: only the winner of the exchange writes, readers wait for READY.
            unsafe { (*slot.value.get()).write(value) };
            slot.state.store(READY, Ordering::Release);
        }
        while slot.state.load(Ordering::Acquire) != READY {
            super::relax();
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
