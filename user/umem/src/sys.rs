//! The few system calls that a heap needs.

use core::ptr::{self, NonNull};

/// Bytes of a page of the machine.
pub const PAGE: usize = 4096;

/// Maps zeroed memory that takes frames only when it is touched.
pub fn map(bytes: usize) -> Option<NonNull<u8>> {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    let access = libc::PROT_READ | libc::PROT_WRITE;
    // SAFETY: a new private mapping touches no memory that anybody uses.
    let start = unsafe { libc::mmap(ptr::null_mut(), bytes, access, flags, -1, 0) };
    if start == libc::MAP_FAILED {
        return None;
    }
    NonNull::new(start.cast())
}

/// Maps `bytes` such that `start + offset` is a multiple of `align`, a power of two.
pub fn map_aligned(bytes: usize, align: usize, offset: usize) -> Option<NonNull<u8>> {
    let start = map(bytes)?;
    if (start.addr().get() + offset).is_multiple_of(align) {
        return Some(start);
    }
    unmap(start, bytes);
    let room = bytes.checked_add(align)?;
    let start = map(room)?;
    let skip = (start.addr().get() + offset).next_multiple_of(align) - offset - start.addr().get();
    let wanted = start.map_addr(|address| address.saturating_add(skip));
    unmap(start, skip);
    unmap(
        wanted.map_addr(|address| address.saturating_add(bytes)),
        room - skip - bytes,
    );
    Some(wanted)
}

/// Gives a mapping, or a part of one, back.
pub fn unmap(start: NonNull<u8>, bytes: usize) {
    if bytes > 0 {
        // SAFETY: the callers pass mappings of their own that nobody uses any more.
        unsafe { libc::munmap(start.as_ptr().cast(), bytes) };
    }
}

/// Gives the frames behind `bytes` back; the memory reads as zeros afterwards.
pub fn discard(start: NonNull<u8>, bytes: usize) {
    // SAFETY: the callers pass memory of their own that nobody uses any more.
    unsafe { libc::madvise(start.as_ptr().cast(), bytes, libc::MADV_DONTNEED) };
}

/// Tells the system how the memory is used; it may not care.
pub fn advise(start: NonNull<u8>, bytes: usize, advice: i32) {
    // SAFETY: the callers pass memory of their own, and advice that keeps what it holds.
    unsafe { libc::madvise(start.as_ptr().cast(), bytes, advice) };
}

/// Moves the program's break up and returns where it was; `None` if it cannot go there.
pub fn move_break(bytes: usize) -> Option<usize> {
    let bytes = isize::try_from(bytes).ok()?;
    // SAFETY: memory that is added at the end touches none that anybody uses.
    let before = unsafe { libc::sbrk(bytes) };
    (before != libc::MAP_FAILED).then(|| before.expose_provenance())
}

/// Milliseconds of a clock that never goes back, in steps of a few.
pub fn milliseconds() -> u64 {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: `time` is ours.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC_COARSE, &mut time) };
    time.tv_sec as u64 * 1000 + time.tv_nsec as u64 / 1_000_000
}

/// Nanoseconds of the monotonic clock.
pub fn nanoseconds() -> u64 {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: `time` is ours.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Sets the calling thread's `errno`.
pub fn set_errno(value: i32) {
    // SAFETY: the C library's slot for this thread.
    unsafe { *libc::__errno_location() = value };
}
