//! The words that CPUs share, as an argument: the machine's, or those of a model checker.

use core::fmt::Debug;
use core::sync::atomic::{AtomicU64, Ordering, fence};

/// A 64-bit word that several CPUs read and write.
pub trait Word: Default + Debug {
    /// Reads it.
    fn load(&self, order: Ordering) -> u64;
    /// Writes it.
    fn store(&self, value: u64, order: Ordering);
    /// Writes it and returns what it was.
    fn swap(&self, value: u64, order: Ordering) -> u64;
    /// Adds to it and returns what it was.
    fn fetch_add(&self, value: u64, order: Ordering) -> u64;
    /// Subtracts from it and returns what it was.
    fn fetch_sub(&self, value: u64, order: Ordering) -> u64;
    /// Sets bits of it and returns what it was.
    fn fetch_or(&self, bits: u64, order: Ordering) -> u64;
    /// Clears all bits of it but `bits` and returns what it was.
    fn fetch_and(&self, bits: u64, order: Ordering) -> u64;
}

/// A family of words, and the fence between them.
pub trait Atomics {
    /// Its words.
    type Word: Word;

    /// A sequentially consistent fence.
    fn fence();
}

/// The processor's own.
#[derive(Debug)]
pub struct Native;

impl Atomics for Native {
    type Word = AtomicU64;

    #[inline(always)]
    fn fence() {
        fence(Ordering::SeqCst);
    }
}

impl Word for AtomicU64 {
    #[inline(always)]
    fn load(&self, order: Ordering) -> u64 {
        self.load(order)
    }

    #[inline(always)]
    fn store(&self, value: u64, order: Ordering) {
        self.store(value, order);
    }

    #[inline(always)]
    fn swap(&self, value: u64, order: Ordering) -> u64 {
        self.swap(value, order)
    }

    #[inline(always)]
    fn fetch_add(&self, value: u64, order: Ordering) -> u64 {
        self.fetch_add(value, order)
    }

    #[inline(always)]
    fn fetch_sub(&self, value: u64, order: Ordering) -> u64 {
        self.fetch_sub(value, order)
    }

    #[inline(always)]
    fn fetch_or(&self, bits: u64, order: Ordering) -> u64 {
        self.fetch_or(bits, order)
    }

    #[inline(always)]
    fn fetch_and(&self, bits: u64, order: Ordering) -> u64 {
        self.fetch_and(bits, order)
    }
}
