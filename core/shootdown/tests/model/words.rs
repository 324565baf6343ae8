//! Loom's words for the protocol, with its fence and without.

use base::{Atomics, Word};
use loom::sync::atomic::{AtomicU64, Ordering, fence};

#[derive(Default, Debug)]
pub struct Watched(AtomicU64);

impl Word for Watched {
    fn load(&self, order: Ordering) -> u64 {
        self.0.load(order)
    }

    fn store(&self, value: u64, order: Ordering) {
        self.0.store(value, order);
    }

    fn swap(&self, value: u64, order: Ordering) -> u64 {
        self.0.swap(value, order)
    }

    fn fetch_add(&self, value: u64, order: Ordering) -> u64 {
        self.0.fetch_add(value, order)
    }

    fn fetch_sub(&self, value: u64, order: Ordering) -> u64 {
        self.0.fetch_sub(value, order)
    }

    fn fetch_or(&self, bits: u64, order: Ordering) -> u64 {
        self.0.fetch_or(bits, order)
    }

    fn fetch_and(&self, bits: u64, order: Ordering) -> u64 {
        self.0.fetch_and(bits, order)
    }
}

/// The protocol as it is.
pub struct Fenced;

impl Atomics for Fenced {
    type Word = Watched;

    fn fence() {
        fence(Ordering::SeqCst);
    }
}

/// The protocol with its fences taken away.
pub struct Unfenced;

impl Atomics for Unfenced {
    type Word = Watched;

    fn fence() {}
}
