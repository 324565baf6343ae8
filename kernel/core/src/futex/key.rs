//! What identifies a futex.

use alloc::sync::Arc;
use core::hash::{BuildHasher, BuildHasherDefault, Hasher};

use base::VirtAddr;

use crate::error::{Error, Result};
use crate::task::current;

/// Names one 32-bit word of memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Key {
    /// The address space, or the memory object if several spaces share it.
    object: usize,
    /// The address in the space, or the offset in the object.
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
    /// The index of its bucket among `buckets`, a power of two.
    pub(super) fn bucket(&self, buckets: usize) -> usize {
        let hash = BuildHasherDefault::<Mix>::default().hash_one((self.object, self.offset >> 2));
        (hash >> 32) as usize & (buckets - 1)
    }
}

/// The key of the word at `address` of the current program. `private` says that only
/// this process uses it.
///
/// Errors: `Invalid` if misaligned, `BadAddress` if a shared word is not mapped.
pub fn key_of(address: VirtAddr, private: bool) -> Result<Key> {
    if address.0 & 3 != 0 {
        return Err(Error::Invalid);
    }
    let me = current();
    if !private && let Some((object, offset)) = me.process.space.get().shared_identity(address)? {
        return Ok(Key { object, offset });
    }
    let object = me.process.space.with(|space| Arc::as_ptr(space) as usize);
    Ok(Key {
        object,
        offset: address.0,
    })
}
