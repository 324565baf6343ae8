//! Pages of the program's address space with an owner.

use std::io;
use std::os::fd::BorrowedFd;
use std::ptr::{self, NonNull};

use rustix::mm::{self, Advice, MapFlags, ProtFlags};

/// See the crate's **Mapped**.
#[derive(Debug)]
pub(crate) struct Mapping {
    start: NonNull<u8>,
    bytes: usize,
}

// SAFETY: the pages are the mapping's alone (Mapped), whichever thread has it.
unsafe impl Send for Mapping {}
// SAFETY: whoever shares it learns where it lies and how long it is, and no more.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Fresh memory, zeroed. A child of a fork does not get it: it could not use it, and copies of pinned pages would be
    /// made at once.
    pub fn anonymous(bytes: usize) -> io::Result<Self> {
        let access = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new private mapping at a place of the kernel's choice touches no memory that
        // anybody uses.
        let start =
            unsafe { mm::mmap_anonymous(ptr::null_mut(), bytes, access, MapFlags::PRIVATE) };
        let mapping = Self::of(start?.cast(), bytes)?;
        // SAFETY: it changes nothing here (Mapped).
        unsafe { mm::madvise(mapping.start.as_ptr().cast(), bytes, Advice::LinuxDontFork) }?;
        Ok(mapping)
    }

    /// A part of a file, shared with whoever else maps it.
    pub fn shared(file: BorrowedFd<'_>, bytes: usize, offset: u64) -> io::Result<Self> {
        let access = ProtFlags::READ | ProtFlags::WRITE;
        let flags = MapFlags::SHARED | MapFlags::POPULATE;
        // SAFETY: as above; it is only reached as ring memory (Words).
        let start = unsafe { mm::mmap(ptr::null_mut(), bytes, access, flags, file, offset) };
        Self::of(start?.cast(), bytes)
    }

    fn of(start: *mut u8, bytes: usize) -> io::Result<Self> {
        let start = NonNull::new(start).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Self { start, bytes })
    }

    /// The first byte.
    pub fn start(&self) -> NonNull<u8> {
        self.start
    }

    /// How many there are.
    pub fn bytes(&self) -> usize {
        self.bytes
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours (Mapped), and nothing points into it: a UMEM's is dropped only
        // by Home, and into ring memory there are no references (Words). It cannot fail for a range
        // that was mapped.
        let _ = unsafe { mm::munmap(self.start.as_ptr().cast(), self.bytes) };
    }
}
