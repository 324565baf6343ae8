//! What identifies a futex.

use core::hash::{BuildHasher, BuildHasherDefault, Hasher};

/// Names one 32-bit word of memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Key {
    object: usize,
    offset: u64,
}

/// A multiplicative hash: keys are few and no adversary gains by a collision but its own.
#[derive(Default)]
struct Mix(u64);

impl Hasher for Mix {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.write_u64(u64::from(byte));
        }
    }

    fn write_u64(&mut self, word: u64) {
        self.0 = (self.0.rotate_left(5) ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }

    fn write_usize(&mut self, word: usize) {
        self.write_u64(word as u64);
    }
}

impl Key {
    /// `object` is the address space, or the memory object if several spaces share it; `offset`
    /// is the address in the space, or the offset in the object.
    pub fn new(object: usize, offset: u64) -> Self {
        Self { object, offset }
    }

    /// The index of its bucket among `buckets`, a power of two.
    pub(crate) fn bucket(&self, buckets: usize) -> usize {
        let hash = BuildHasherDefault::<Mix>::default().hash_one((self.object, self.offset >> 2));
        (hash >> 32) as usize & (buckets - 1)
    }
}
