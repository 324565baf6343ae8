//! Contiguous memory.

use super::caching::{MemoryType, WriteBack};
use super::owner::{Cpu, Device, KnownToDevice, Owner, Shared};
use super::request::Claim;
use super::span::{self, HasDeviceAddr, Span};
use base::DeviceAddr;
use core::marker::PhantomData;
use core::mem::ManuallyDrop;
use core::ptr::NonNull;
use core::sync::atomic::{Ordering, fence};
use mbuf::FreeList;

/// Gives memory back; gets its base, its bytes and the word that was passed to
/// [`DmaBuf::new`]. Buffers that were joined are given back as one.
pub type DmaRelease = fn(base: NonNull<u8>, bytes: usize, context: usize);

/// Contiguous memory for a device: cached as `M` says, in the hands of `O`.
#[derive(Debug)]
pub struct DmaBuf<M: MemoryType = WriteBack, O: Owner = Cpu> {
    base: NonNull<u8>,
    bytes: usize,
    device: DeviceAddr,
    claim: Claim,
    /// No device knows the address, so dropping frees.
    is_quiet: bool,
    kind: PhantomData<(M, O)>,
}

// SAFETY: OWNED: the memory belongs to this buffer alone and is mapped on every CPU.
unsafe impl<M: MemoryType, O: Owner> Send for DmaBuf<M, O> {}

impl<M: MemoryType> DmaBuf<M, Cpu> {
    /// Takes `bytes` bytes at `base`, which the device sees at `device`. `release` is
    /// called once, when the buffer is dropped.
    ///
    /// # Safety
    /// The caller vouches for OWNED and CONTIGUOUS (see the crate's documentation).
    pub unsafe fn new(
        base: NonNull<u8>,
        bytes: usize,
        device: DeviceAddr,
        release: DmaRelease,
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
            claim: Claim { release, context },
            is_quiet: true,
            kind: PhantomData,
        }
    }

    /// Hands the memory to a device; what was written to it is visible to it.
    #[must_use = "memory that is dropped in the device's hands is lost"]
    pub fn give(self) -> DmaBuf<M, Device> {
        // Drains write-combining buffers; memory of the other types needs no more than
        // the compiler's order.
        fence(Ordering::SeqCst);
        self.into_owner(false)
    }

    /// Lets driver and device use the memory at the same time.
    #[must_use = "memory that is dropped while a device knows it is lost"]
    pub fn share(self) -> DmaBuf<M, Shared> {
        fence(Ordering::SeqCst);
        self.into_owner(false)
    }

    /// One buffer out of two, if `next` begins where this one ends, for the processor
    /// and for the device; the addresses where they meet otherwise.
    pub(super) fn join(self, next: Self) -> Result<Self, (DeviceAddr, DeviceAddr)> {
        let end = self.device + self.bytes as u64;
        let adjoins = self.base.as_ptr().wrapping_add(self.bytes) == next.base.as_ptr();
        if end != next.device || !adjoins {
            return Err((end, next.device));
        }
        let (mut joined, next) = (self, ManuallyDrop::new(next));
        joined.bytes += next.bytes;
        Ok(joined)
    }
}

impl DmaBuf<WriteBack, Cpu> {
    /// Cuts the memory into packet buffers and adds them to `pool`, for good; returns how
    /// many. The buffers' addresses for devices are offsets into this contiguous
    /// memory, which is why there is no other way into a pool.
    pub fn into_packets(self, pool: &'static FreeList) -> usize {
        let memory = ManuallyDrop::new(self);
        // SAFETY: `mbuf`'s Live: zeroed, aligned by its sources to 64 bytes (checked
        // there), contiguous, ours (OWNED), and never given back.
        unsafe { pool.add_region(memory.base, memory.bytes, memory.device) }
    }
}

impl<M: MemoryType> DmaBuf<M, Device> {
    /// Takes the memory back: the device has said, or been brought to say, that it is
    /// done with it.
    pub fn take_back(self) -> DmaBuf<M, Cpu> {
        fence(Ordering::SeqCst);
        self.into_owner(true)
    }
}

impl<M: MemoryType> DmaBuf<M, Shared> {
    /// The device has been reset and has forgotten the address: from now on dropping
    /// the buffer frees it.
    pub fn retire(&mut self) {
        self.is_quiet = true;
    }
}

impl<M: MemoryType, O: Owner> DmaBuf<M, O> {
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

    #[inline]
    pub(crate) fn holds(&self, offset: usize, len: usize) -> bool {
        // `len` is nearly always known when this is compiled: one subtraction and two comparisons.
        self.bytes
            .checked_sub(len)
            .is_some_and(|last| offset <= last)
    }

    fn into_owner<P: Owner>(self, is_quiet: bool) -> DmaBuf<M, P> {
        let from = ManuallyDrop::new(self);
        DmaBuf {
            base: from.base,
            bytes: from.bytes,
            device: from.device,
            claim: from.claim,
            is_quiet,
            kind: PhantomData,
        }
    }
}

impl<M: MemoryType, O: KnownToDevice> span::sealed::Sealed for DmaBuf<M, O> {}

impl<M: MemoryType, O: KnownToDevice> HasDeviceAddr for DmaBuf<M, O> {
    #[inline]
    fn dev_addr(&self, offset: usize, len: usize) -> Option<Span> {
        if !self.holds(offset, len) {
            return None;
        }
        let addr = self.device + offset as u64;
        Some(Span::new(addr, u32::try_from(len).ok()?))
    }
}

impl<M: MemoryType, O: Owner> Drop for DmaBuf<M, O> {
    fn drop(&mut self) {
        if self.is_quiet {
            (self.claim.release)(self.base, self.bytes, self.claim.context);
        }
    }
}
