//! The driver's access: words, atomically, and bytes, by copying.
//!
//! Even in [`Cpu`]'s hands a device that does not keep to the rules may write, so nothing
//! here gives out a reference. Offsets are the driver's own: one that lies outside is
//! a bug and panics.

use super::DmaBuf;
use super::caching::MemoryType;
use super::owner::{Cpu, Owner, Shared};
use core::sync::atomic::{AtomicU16, AtomicU32, AtomicU64, Ordering};

macro_rules! words {
    ($read:ident, $write:ident, $acquire:ident, $release:ident, $word:ty, $atomic:ty) => {
        #[doc = concat!("Reads the little-endian `", stringify!($word), "` at `offset`, unordered.")]
        #[inline]
        pub fn $read(&self, offset: usize) -> $word {
            <$word>::from_le(self.atomic::<$word, $atomic>(offset).load(Ordering::Relaxed))
        }

        #[doc = concat!("Writes a little-endian `", stringify!($word), "` at `offset`, unordered.")]
        #[inline]
        pub fn $write(&self, offset: usize, value: $word) {
            self.atomic::<$word, $atomic>(offset).store(value.to_le(), Ordering::Relaxed);
        }

        #[doc = concat!("Reads the `", stringify!($word), "` at `offset` before all later reads.")]
        #[inline]
        pub fn $acquire(&self, offset: usize) -> $word {
            <$word>::from_le(self.atomic::<$word, $atomic>(offset).load(Ordering::Acquire))
        }

        #[doc = concat!("Writes the `", stringify!($word), "` at `offset` after all earlier writes.")]
        #[inline]
        pub fn $release(&self, offset: usize, value: $word) {
            self.atomic::<$word, $atomic>(offset).store(value.to_le(), Ordering::Release);
        }
    };
}

macro_rules! access {
    ($owner:ty) => {
        impl<M: MemoryType> DmaBuf<M, $owner> {
            words!(
                read_u16,
                write_u16,
                acquire_u16,
                release_u16,
                u16,
                AtomicU16
            );
            words!(
                read_u32,
                write_u32,
                acquire_u32,
                release_u32,
                u32,
                AtomicU32
            );
            words!(
                read_u64,
                write_u64,
                acquire_u64,
                release_u64,
                u64,
                AtomicU64
            );

            /// Copies `from` to `offset`.
            #[inline]
            pub fn copy_in(&self, offset: usize, from: &[u8]) {
                self.write_bytes(offset, from);
            }

            /// Copies from `offset` into all of `to`.
            #[inline]
            pub fn copy_out(&self, offset: usize, to: &mut [u8]) {
                self.read_bytes(offset, to);
            }
        }
    };
}

access!(Cpu);
access!(Shared);

impl<M: MemoryType, O: Owner> DmaBuf<M, O> {
    #[inline]
    fn write_bytes(&self, offset: usize, from: &[u8]) {
        assert!(self.holds(offset, from.len()), "copy outside of the buffer");
        let to = self.base().as_ptr().wrapping_add(offset);
        // SAFETY: just checked to lie inside memory that OWNED keeps mapped; `from` is a
        // reference and so cannot overlap memory to which none exists.
        unsafe { to.copy_from_nonoverlapping(from.as_ptr(), from.len()) }
    }

    #[inline]
    fn read_bytes(&self, offset: usize, to: &mut [u8]) {
        assert!(self.holds(offset, to.len()), "copy outside of the buffer");
        let from = self.base().as_ptr().wrapping_add(offset);
        // SAFETY: as in `write_bytes`, in the other direction.
        unsafe { from.copy_to_nonoverlapping(to.as_mut_ptr(), to.len()) }
    }

    #[inline]
    fn atomic<Word, Atomic>(&self, offset: usize) -> &Atomic {
        const { assert!(size_of::<Word>() == size_of::<Atomic>()) };
        let aligned = offset.is_multiple_of(size_of::<Word>());
        assert!(
            aligned && self.holds(offset, size_of::<Word>()),
            "word outside of the buffer"
        );
        // SAFETY: inside memory that OWNED keeps mapped and aligned to eight bytes, and
        // `offset` keeps the word's alignment; an atomic may be shared with the device.
        unsafe { &*self.base().as_ptr().wrapping_add(offset).cast::<Atomic>() }
    }
}
