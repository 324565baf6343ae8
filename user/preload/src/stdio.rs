//! Streams of the C library on numbers of ours.
//!
//! They read and write by system calls of the C library's own, which are not seen from outside. So a stream on a number of ours is
//! one of fopencookie(3), whose functions are ours: what fdopen(3) gives, and the three standard ones of a program that was
//! started with sockets under their numbers (`inherited_fds`). fileno(3) knows their numbers.
//!
//! exit(3) flushes streams after it has run what libraries have for their end, which closes our sockets (`exit`). So that flushes
//! first, as long as there is somebody who hears it.

use std::ffi::{c_char, c_int, c_void};
use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};

use libc::{FILE, off64_t, size_t, ssize_t};

use crate::next;
use crate::numbers::{Whose, seen, whose};

/// The four functions of a stream (`cookie_io_functions_t`, bits/types/cookie_io_functions_t.h).
#[repr(C)]
struct Functions {
    read: extern "C" fn(*mut c_void, *mut c_char, size_t) -> ssize_t,
    write: extern "C" fn(*mut c_void, *const c_char, size_t) -> ssize_t,
    seek: extern "C" fn(*mut c_void, *mut off64_t, c_int) -> c_int,
    close: extern "C" fn(*mut c_void) -> c_int,
}

unsafe extern "C" {
    static mut stdin: *mut FILE;
    static mut stdout: *mut FILE;
    static mut stderr: *mut FILE;
    fn fopencookie(cookie: *mut c_void, mode: *const c_char, functions: Functions) -> *mut FILE;
    /// The C library's own, whatever `stdout` is by now.
    static mut _IO_2_1_stdout_: FILE;
    fn __fpending(stream: *mut FILE) -> size_t;
    fn ftrylockfile(stream: *mut FILE) -> c_int;
    fn funlockfile(stream: *mut FILE);
}

/// Streams of ours, by their places, and the numbers behind them.
static STREAMS: Mutex<Vec<(usize, c_int)>> = Mutex::new(Vec::new());
/// There was one.
static HAS_ANY: AtomicBool = AtomicBool::new(false);

/// The number is what the cookie is.
fn number_of(cookie: *mut c_void) -> c_int {
    cookie.addr() as c_int
}

// The functions below are those of our own names, as the program's calls are.

extern "C" fn read(cookie: *mut c_void, to: *mut c_char, len: size_t) -> ssize_t {
    // SAFETY: the C library has so much room.
    unsafe { libc::read(number_of(cookie), to.cast(), len) }
}

/// It wants 0 for a failure.
extern "C" fn write(cookie: *mut c_void, from: *const c_char, len: size_t) -> ssize_t {
    // SAFETY: the C library has so many bytes.
    unsafe { libc::write(number_of(cookie), from.cast(), len) }.max(0)
}

extern "C" fn seek(cookie: *mut c_void, offset: *mut off64_t, whence: c_int) -> c_int {
    // SAFETY: the C library's own variable.
    let offset = unsafe { &mut *offset };
    // SAFETY: no memory is passed.
    match unsafe { libc::lseek(number_of(cookie), *offset, whence) } {
        -1 => -1,
        reached => {
            *offset = reached;
            0
        }
    }
}

extern "C" fn close(cookie: *mut c_void) -> c_int {
    let number = number_of(cookie);
    let mut streams = STREAMS.lock().unwrap_or_else(PoisonError::into_inner);
    streams.retain(|(_, other)| *other != number);
    drop(streams);
    // SAFETY: no memory is passed.
    unsafe { libc::close(number) }
}

/// A stream on a number of ours; null without memory.
///
/// # Safety
/// **Caller**: the mode is one of fopen(3).
pub unsafe fn open(number: c_int, mode: *const c_char) -> *mut FILE {
    let functions = Functions {
        read,
        write,
        seek,
        close,
    };
    let cookie = ptr::without_provenance_mut(number.cast_unsigned() as usize);
    // SAFETY: the functions have the right types and stay loaded; **Caller**.
    let stream = unsafe { fopencookie(cookie, mode, functions) };
    if !stream.is_null() {
        let mut streams = STREAMS.lock().unwrap_or_else(PoisonError::into_inner);
        streams.push((stream.addr(), number));
        HAS_ANY.store(true, Relaxed);
    }
    stream
}

/// The standard streams are sockets of ours where their numbers are, before `main`.
pub fn replace_standard() {
    let is_ours = |number| matches!(seen(number), Whose::Socket | Whose::Inherited);
    // SAFETY: nobody uses a stream yet, and there is one thread.
    unsafe {
        if is_ours(libc::STDIN_FILENO) {
            stdin = open(libc::STDIN_FILENO, c"r".as_ptr());
        }
        if is_ours(libc::STDOUT_FILENO) {
            stdout = open(libc::STDOUT_FILENO, c"w".as_ptr());
        }
        if is_ours(libc::STDERR_FILENO) {
            stderr = open(libc::STDERR_FILENO, c"w".as_ptr());
            libc::setvbuf(stderr, ptr::null_mut(), libc::_IONBF, 0);
        }
    }
}

/// Flushes our streams and the standard output. One that another thread uses is left alone: that one may wait for ever.
pub fn flush() {
    // Whoever closes a stream waits for this. Who has it may be the thread that a signal's handler ends the program in, or one that
    // was not forked.
    let Ok(streams) = STREAMS.try_lock() else {
        return;
    };
    let ours = streams.iter().map(|(stream, _)| *stream as *mut FILE);
    // SAFETY: the C library's own stream, which is never freed, and ours that nobody has closed.
    unsafe {
        for stream in ours.chain([&raw mut _IO_2_1_stdout_]) {
            if __fpending(stream) != 0 && ftrylockfile(stream) == 0 {
                libc::fflush(stream);
                funlockfile(stream);
            }
        }
    }
}

/// `fdopen(3)`.
///
/// # Safety
/// **Caller**.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fdopen(number: c_int, mode: *const c_char) -> *mut FILE {
    match whose(number) {
        // SAFETY: **Caller**.
        Whose::Socket | Whose::LogFile => unsafe { open(number, mode) },
        // SAFETY: **Caller**.
        _ => unsafe { next::fdopen.get()(number, mode) },
    }
}

/// `fileno(3)`.
///
/// # Safety
/// **Caller**.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fileno(stream: *mut FILE) -> c_int {
    if HAS_ANY.load(Relaxed) {
        let streams = STREAMS.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, number)) = streams.iter().find(|(other, _)| *other == stream.addr()) {
            return *number;
        }
    }
    // SAFETY: **Caller**.
    unsafe { next::fileno.get()(stream) }
}

/// `fileno_unlocked(3)`.
///
/// # Safety
/// **Caller**.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fileno_unlocked(stream: *mut FILE) -> c_int {
    // SAFETY: **Caller**.
    unsafe { fileno(stream) }
}
