//! Memory of rings, mapped for the library.

use std::ffi::c_int;
use std::io;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicU32, Ordering};

use base::SharedMemory;

use super::syscalls::raw_map;

/// Mapped pages (**Pages**).
#[derive(Debug)]
pub struct Pages {
    start: NonNull<u8>,
    bytes: usize,
}

// SAFETY: memory that is reached as words, and copied, may be reached from any thread (**Pages**).
unsafe impl Send for Pages {}

impl Pages {
    /// Maps `bytes` of a file from an offset on.
    ///
    /// Errors: those of mmap(2).
    pub fn map(file: c_int, bytes: usize, offset: i64) -> io::Result<Self> {
        let start = map_at(ptr::null_mut(), bytes, file, offset)?;
        Ok(Self { start, bytes })
    }

    #[inline]
    fn at(&self, offset: usize, bytes: usize) -> NonNull<u8> {
        assert!(
            offset < self.bytes && bytes <= self.bytes - offset,
            "an entry lies in its ring"
        );
        // SAFETY: it lies within the mapping (**Pages**).
        unsafe { self.start.add(offset) }
    }

    #[inline]
    fn word(&self, offset: usize) -> &AtomicU32 {
        assert!(offset.is_multiple_of(size_of::<u32>()), "words are aligned");
        // SAFETY: an aligned word of the mapping (**Pages**).
        unsafe {
            self.at(offset, size_of::<u32>())
                .cast::<AtomicU32>()
                .as_ref()
        }
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        // SAFETY: the mapping is this value's (**Pages**).
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.bytes) };
    }
}

/// Maps shared pages anew, at an address if that is not null, whatever is there.
///
/// Errors: those of mmap(2).
pub fn map_at(at: *mut u8, bytes: usize, file: c_int, offset: i64) -> io::Result<NonNull<u8>> {
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    let fixed = if at.is_null() { 0 } else { libc::MAP_FIXED };
    let how = libc::MAP_SHARED | libc::MAP_POPULATE | fixed;
    // SAFETY: new memory, or that of a ring which is ours to exchange.
    let start = unsafe { raw_map(at.cast(), bytes, [protection, how, file], offset) };
    match start == libc::MAP_FAILED {
        true => Err(io::Error::last_os_error()),
        false => NonNull::new(start.cast()).ok_or_else(|| io::ErrorKind::OutOfMemory.into()),
    }
}

impl SharedMemory for Pages {
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
        // SAFETY: both are as long as `to`, and nobody has references into the mapping (**Pages**).
        unsafe { ptr::copy_nonoverlapping(from.as_ptr(), to.as_mut_ptr(), to.len()) };
    }

    #[inline]
    fn write(&self, at: usize, from: &[u8]) {
        let to = self.at(at, from.len());
        // SAFETY: as in `read`.
        unsafe { ptr::copy_nonoverlapping(from.as_ptr(), to.as_ptr(), from.len()) };
    }
}
