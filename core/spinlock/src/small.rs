//! The words of a lock, as an argument: the machine's, or those of a model checker. A lock is in
//! nearly every object of the kernel, so they are as small as can be.

use core::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, Ordering};

/// A small word that several CPUs read and write.
pub trait Small<T>: Default {
    /// Reads it.
    fn load(&self, order: Ordering) -> T;
    /// Writes it.
    fn store(&self, value: T, order: Ordering);
    /// Writes it and returns what it was.
    fn swap(&self, value: T, order: Ordering) -> T;
    /// Writes `new` if it is `old`; whether it was.
    fn replace(&self, old: T, new: T, order: Ordering) -> bool;
}

/// A word that several CPUs count in.
pub trait Counter: Default {
    /// Reads it.
    fn load(&self, order: Ordering) -> u32;
    /// Adds to it and returns what it was.
    fn add(&self, value: u32, order: Ordering) -> u32;
    /// Subtracts from it.
    fn sub(&self, value: u32, order: Ordering);
}

/// A family of such words.
pub trait Family {
    /// For a few bits.
    type Byte: Small<u8>;
    /// For the number of a CPU.
    type Name: Small<u16>;
    /// For the number of those who read.
    type Counter: Counter;
}

/// The processor's own.
#[derive(Debug)]
pub struct Native;

impl Family for Native {
    type Byte = AtomicU8;
    type Name = AtomicU16;
    type Counter = AtomicU32;
}

impl Counter for AtomicU32 {
    #[inline(always)]
    fn load(&self, order: Ordering) -> u32 {
        self.load(order)
    }

    #[inline(always)]
    fn add(&self, value: u32, order: Ordering) -> u32 {
        self.fetch_add(value, order)
    }

    #[inline(always)]
    fn sub(&self, value: u32, order: Ordering) {
        self.fetch_sub(value, order);
    }
}

macro_rules! native {
    ($atomic:ty, $value:ty) => {
        impl Small<$value> for $atomic {
            #[inline(always)]
            fn load(&self, order: Ordering) -> $value {
                self.load(order)
            }

            #[inline(always)]
            fn store(&self, value: $value, order: Ordering) {
                self.store(value, order);
            }

            #[inline(always)]
            fn swap(&self, value: $value, order: Ordering) -> $value {
                self.swap(value, order)
            }

            #[inline(always)]
            fn replace(&self, old: $value, new: $value, order: Ordering) -> bool {
                self.compare_exchange(old, new, order, Ordering::Relaxed)
                    .is_ok()
            }
        }
    };
}
native!(AtomicU8, u8);
native!(AtomicU16, u16);
