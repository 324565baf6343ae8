//! Memory shared with a device.
//!
//! The peer may write at any time, so nothing here hands out a reference: words are
//! read and written atomically, bytes are copied. A value read twice may differ;
//! drivers read once and check the copy.

use base::DeviceAddr;
use core::ptr::NonNull;
use core::sync::atomic::{AtomicU16, AtomicU32, AtomicU64, Ordering};
use mbuf::Mbuf;

/// A range of device addresses, contiguous and owned by whoever tells it to a device.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Span {
    /// Where it begins on the device's bus.
    pub addr: DeviceAddr,
    /// Bytes.
    pub len: u32,
}

impl Span {
    /// The bytes of a packet buffer, for a device to read.
    #[inline]
    pub fn of(buffer: &Mbuf) -> Self {
        Self {
            addr: buffer.device_addr(),
            len: buffer.len() as u32,
        }
    }

    /// The room behind the bytes of a packet buffer, for a device to write.
    #[inline]
    pub fn room_of(buffer: &Mbuf) -> Self {
        let addr = buffer.device_addr() + buffer.len() as u64;
        Self {
            addr,
            len: buffer.tailroom() as u32,
        }
    }
}

/// Gives a buffer's memory back; gets its base, its bytes and the word that was passed
/// to [`DmaBuf::new`].
pub type DmaRelease = fn(base: NonNull<u8>, bytes: usize, context: usize);

/// Whoever can hand out memory for devices.
pub trait DmaSource {
    /// Zeroed contiguous memory of at least `bytes` bytes, aligned to `align` (a power
    /// of two); `None` when memory is short.
    fn dma_alloc(&self, bytes: usize, align: usize) -> Option<DmaBuf>;
}

/// Contiguous memory that one device and its driver share.
#[derive(Debug)]
pub struct DmaBuf {
    base: NonNull<u8>,
    bytes: usize,
    device: DeviceAddr,
    release: Option<DmaRelease>,
    context: usize,
}

// SAFETY: OWNED: the memory belongs to this buffer alone and is mapped on every CPU.
unsafe impl Send for DmaBuf {}
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

impl DmaBuf {
    /// Takes `bytes` bytes at `base`, which the device sees at `device`. `release` is
    /// called once, when the buffer is dropped.
    ///
    /// # Safety
    /// The caller vouches for OWNED (see the crate's documentation).
    pub unsafe fn new(
        base: NonNull<u8>,
        bytes: usize,
        device: DeviceAddr,
        release: Option<DmaRelease>,
        context: usize,
    ) -> Self {
        assert!(
            base.cast::<u64>().is_aligned(),
            "memory for a device not aligned"
        );
        Self {
            base,
            bytes,
            device,
            release,
            context,
        }
    }

    /// Bytes in the buffer.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    pub(crate) fn base(&self) -> NonNull<u8> {
        self.base
    }

    pub(crate) fn device(&self) -> DeviceAddr {
        self.device
    }

    /// What the device must be told to reach `len` bytes at `offset`; `None` if they do
    /// not lie inside.
    #[inline]
    pub fn span(&self, offset: usize, len: usize) -> Option<Span> {
        if !self.holds(offset, len) {
            return None;
        }
        Some(Span {
            addr: self.device + offset as u64,
            len: u32::try_from(len).ok()?,
        })
    }

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

    /// Copies `from` to `offset`. Panics if it does not fit: offsets are the driver's own.
    #[inline]
    pub fn copy_in(&self, offset: usize, from: &[u8]) {
        assert!(self.holds(offset, from.len()), "copy outside of the buffer");
        let to = self.base.as_ptr().wrapping_add(offset);
        // SAFETY: just checked to lie inside memory that OWNED keeps mapped; `from` is a
        // reference and so cannot overlap memory to which none exists.
        unsafe { to.copy_from_nonoverlapping(from.as_ptr(), from.len()) }
    }

    /// Copies from `offset` into all of `to`. Panics if it lies outside: offsets are the
    /// driver's own.
    #[inline]
    pub fn copy_out(&self, offset: usize, to: &mut [u8]) {
        assert!(self.holds(offset, to.len()), "copy outside of the buffer");
        let from = self.base.as_ptr().wrapping_add(offset);
        // SAFETY: as in `copy_in`, in the other direction.
        unsafe { from.copy_to_nonoverlapping(to.as_mut_ptr(), to.len()) }
    }

    #[inline]
    fn holds(&self, offset: usize, len: usize) -> bool {
        offset.checked_add(len).is_some_and(|end| end <= self.bytes)
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
        unsafe { &*self.base.as_ptr().wrapping_add(offset).cast::<Atomic>() }
    }
}

impl Drop for DmaBuf {
    fn drop(&mut self) {
        if let Some(release) = self.release {
            release(self.base, self.bytes, self.context);
        }
    }
}
