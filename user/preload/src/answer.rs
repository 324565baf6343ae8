//! Results as C has them: a number, or -1 and the reason in `errno`.

use std::ffi::c_int;

use posix::{Errno, Result};

/// The reason of the calling thread's last failure.
pub fn errno() -> i32 {
    // SAFETY: the C library's slot for this thread.
    unsafe { *libc::__errno_location() }
}

/// Another reason, or the same again.
pub fn set_errno(number: i32) {
    // SAFETY: as above.
    unsafe { *libc::__errno_location() = number };
}

/// A number of bytes, or -1.
pub fn count(result: Result<usize>) -> isize {
    match result {
        Ok(count) => count as isize,
        Err(error) => {
            set_errno(error.number());
            -1
        }
    }
}

/// A small number, or -1.
pub fn number(result: Result<c_int>) -> c_int {
    match result {
        Ok(number) => number,
        Err(error) => {
            set_errno(error.number());
            -1
        }
    }
}

/// Zero, or -1.
pub fn done(result: Result<()>) -> c_int {
    number(result.map(|()| 0))
}

/// The same, if the call was not cut off because the program's sockets went over to a newer library: it begins
/// again there. A limit on its time does, too.
pub fn count_or(result: Result<usize>, again: impl FnOnce() -> isize) -> isize {
    match result {
        Err(Errno::MOVED) => again(),
        result => count(result),
    }
}

/// The same of a small number.
pub fn number_or(result: Result<c_int>, again: impl FnOnce() -> c_int) -> c_int {
    match result {
        Err(Errno::MOVED) => again(),
        result => number(result),
    }
}

/// The same of nothing.
pub fn done_or(result: Result<()>, again: impl FnOnce() -> c_int) -> c_int {
    number_or(result.map(|()| 0), again)
}

/// Has the program killed that sends to nobody, unless it does not want that.
pub fn broken_pipe(result: Result<usize>, flags: c_int) -> Result<usize> {
    if result == Err(Errno::BROKEN_PIPE) && flags & libc::MSG_NOSIGNAL == 0 {
        // SAFETY: a signal to ourselves; whatever handler the program has runs, with no lock held.
        unsafe { libc::raise(libc::SIGPIPE) };
    }
    result
}
