//! A window of device registers.

use core::ptr::NonNull;

/// Memory-mapped registers: volatile access at byte offsets, each checked against the
/// window's size. An offset outside is a bug in the driver and panics; sizes that a
/// device claims are checked once, with [`Mmio::window`].
#[derive(Debug)]
pub struct Mmio {
    base: NonNull<u8>,
    bytes: usize,
}

// SAFETY: WINDOW holds on every CPU, and all access is volatile through raw pointers.
unsafe impl Send for Mmio {}
// SAFETY: as above; what concurrent register access means is the device's business.
unsafe impl Sync for Mmio {}

macro_rules! access {
    ($read:ident, $write:ident, $word:ty) => {
        #[doc = concat!("Reads a little-endian `", stringify!($word), "` at `offset` bytes.")]
        #[inline]
        pub fn $read(&self, offset: usize) -> $word {
            // SAFETY: `at` checked that the word lies in the window (WINDOW) and is aligned.
            <$word>::from_le(unsafe { self.at::<$word>(offset).read_volatile() })
        }

        #[doc = concat!("Writes a little-endian `", stringify!($word), "` at `offset` bytes.")]
        #[inline]
        pub fn $write(&self, offset: usize, value: $word) {
            // SAFETY: `at` checked that the word lies in the window (WINDOW) and is aligned.
            unsafe { self.at::<$word>(offset).write_volatile(value.to_le()) }
        }
    };
}

impl Mmio {
    /// A window of `bytes` bytes at `base`.
    ///
    /// # Safety
    /// The caller vouches for WINDOW (see the crate's documentation); `base` is aligned
    /// to eight bytes.
    pub unsafe fn new(base: NonNull<u8>, bytes: usize) -> Self {
        Self { base, bytes }
    }

    /// Bytes in the window.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// The part of `bytes` bytes at `offset`, if it lies inside.
    pub fn window(&self, offset: usize, bytes: usize) -> Option<Mmio> {
        let end = offset.checked_add(bytes)?;
        if end > self.bytes {
            return None;
        }
        // SAFETY: `offset <= end <= self.bytes`, so the sum stays in the mapped window.
        let base = unsafe { self.base.add(offset) };
        Some(Mmio { base, bytes })
    }

    access!(read8, write8, u8);
    access!(read16, write16, u16);
    access!(read32, write32, u32);
    access!(read64, write64, u64);

    #[inline]
    fn at<T>(&self, offset: usize) -> *mut T {
        let inside = offset
            .checked_add(size_of::<T>())
            .is_some_and(|end| end <= self.bytes);
        assert!(inside, "register outside of the window");
        let word = self.base.as_ptr().wrapping_add(offset).cast::<T>();
        assert!(word.is_aligned(), "register not aligned");
        word
    }
}
