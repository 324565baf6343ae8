//! Results as C has them: a number, or -1 and the reason in `errno`.

use std::ffi::c_int;

use posix::{Errno, Result};

/// The reason of the calling thread's last failure.
pub fn errno() -> i32 {
    // SAFETY: the C library's slot for this thread.
    unsafe { *libc::__errno_location() }
}

fn set_errno(number: i32) {
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

/// Has the program killed that sends to nobody, unless it does not want that.
pub fn broken_pipe(result: Result<usize>, flags: c_int) -> Result<usize> {
    if result == Err(Errno::BROKEN_PIPE) && flags & libc::MSG_NOSIGNAL == 0 {
        // SAFETY: a signal to ourselves; whatever handler the program has runs, with no lock held.
        unsafe { libc::raise(libc::SIGPIPE) };
    }
    result
}
