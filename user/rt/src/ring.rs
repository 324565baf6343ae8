//! The memory of one ring, which the kernel writes too, or another library of the program.

use std::io;
use std::os::fd::BorrowedFd;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicU32, Ordering};

use base::SharedMemory;

use crate::mapping::Mapping;

/// A ring of an AF_XDP socket, of io_uring or of an area of a disk, mapped.
#[derive(Debug)]
pub struct RingMemory(Mapping);

impl RingMemory {
    /// Maps the ring at an offset of its socket or file.
    ///
    /// Errors: those of mmap(2).
    pub fn map(socket: BorrowedFd<'_>, bytes: usize, offset: u64) -> io::Result<Self> {
        Mapping::shared(socket, bytes, offset).map(Self)
    }

    /// Where `bytes` at an offset lie. Panics beyond the end: offsets follow from the ring's size.
    #[inline]
    fn at(&self, offset: usize, bytes: usize) -> NonNull<u8> {
        assert!(
            offset < self.0.bytes() && bytes <= self.0.bytes() - offset,
            "an entry lies in its ring"
        );
        // SAFETY: it lies within the mapping (Mapped).
        unsafe { self.0.start().add(offset) }
    }

    #[inline]
    fn word(&self, offset: usize) -> &AtomicU32 {
        assert!(offset.is_multiple_of(size_of::<u32>()), "words are aligned");
        let word = self.at(offset, size_of::<u32>()).cast::<AtomicU32>();
        // SAFETY: an aligned word of the mapping (Mapped) that is only reached as an atomic (Words).
        unsafe { word.as_ref() }
    }
}

impl SharedMemory for RingMemory {
    #[inline]
    fn load(&self, at: usize) -> u32 {
        self.word(at).load(Ordering::Acquire)
    }

    #[inline]
    fn store(&self, at: usize, value: u32) {
        self.word(at).store(value, Ordering::Release);
    }

    #[inline]
    fn read(&self, at: usize, to: &mut [u8]) {
        let from = self.at(at, to.len());
        // SAFETY: both are as long as `to`, and nobody has references into the mapping (Words). The
        // kernel does not write entries that it has shown.
        unsafe { ptr::copy_nonoverlapping(from.as_ptr(), to.as_mut_ptr(), to.len()) };
    }

    #[inline]
    fn write(&self, at: usize, from: &[u8]) {
        let to = self.at(at, from.len());
        // SAFETY: as in `read`.
        unsafe { ptr::copy_nonoverlapping(from.as_ptr(), to.as_ptr(), from.len()) };
    }
}
