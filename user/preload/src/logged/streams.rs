//! fopen(3) and fdopen(3): the C library's streams read and write by system calls that nobody stands in front of, so a
//! stream of ours is one of fopencookie(3), whose functions are ours. fileno(3) knows their numbers.

use std::collections::BTreeMap;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::ptr;
use std::sync::{Mutex, PoisonError};

use libc::{AT_FDCWD, FILE, off64_t, size_t, ssize_t};

use super::descriptors::{self, Transfer, is_logged};
use super::opening::{also, open_logged};
use super::{answer, path};
use crate::memory;
use crate::next;

/// The numbers of streams, by their addresses.
static STREAMS: Mutex<BTreeMap<usize, c_int>> = Mutex::new(BTreeMap::new());

/// The four functions of a stream (`cookie_io_functions_t`, bits/types/cookie_io_functions_t.h).
#[repr(C)]
struct Functions {
    read: unsafe extern "C" fn(*mut c_void, *mut c_char, size_t) -> ssize_t,
    write: unsafe extern "C" fn(*mut c_void, *const c_char, size_t) -> ssize_t,
    seek: unsafe extern "C" fn(*mut c_void, *mut off64_t, c_int) -> c_int,
    close: unsafe extern "C" fn(*mut c_void) -> c_int,
}

unsafe extern "C" {
    fn fopencookie(cookie: *mut c_void, mode: *const c_char, functions: Functions) -> *mut FILE;
}

/// The number is what the cookie is.
fn number_of(cookie: *mut c_void) -> c_int {
    cookie.addr() as c_int
}

unsafe extern "C" fn read(cookie: *mut c_void, to: *mut c_char, len: size_t) -> ssize_t {
    // SAFETY: the C library has so much room.
    let piece = unsafe { memory::piece_mut(to.cast(), len) };
    descriptors::read(number_of(cookie), &mut [piece], Transfer::Here)
}

/// It wants 0 for a failure.
unsafe extern "C" fn write(cookie: *mut c_void, from: *const c_char, len: size_t) -> ssize_t {
    // SAFETY: the C library has so many bytes.
    let piece = unsafe { memory::piece(from.cast(), len) };
    descriptors::write(number_of(cookie), &[piece], Transfer::Here).max(0)
}

unsafe extern "C" fn seek(cookie: *mut c_void, offset: *mut off64_t, whence: c_int) -> c_int {
    // SAFETY: the C library's own variable.
    let offset = unsafe { &mut *offset };
    match descriptors::lseek(number_of(cookie), *offset, whence) {
        -1 => -1,
        reached => {
            *offset = reached;
            0
        }
    }
}

unsafe extern "C" fn close(cookie: *mut c_void) -> c_int {
    let number = number_of(cookie);
    let mut streams = STREAMS.lock().unwrap_or_else(PoisonError::into_inner);
    streams.retain(|_, of| *of != number);
    drop(streams);
    crate::descriptors::close(number)
}

/// A stream over a number of ours.
///
/// # Safety
/// **Caller**: the mode is a string.
unsafe fn stream_of(number: c_int, mode: *const c_char) -> *mut FILE {
    let functions = Functions {
        read,
        write,
        seek,
        close,
    };
    let cookie = ptr::without_provenance_mut(number as usize);
    // SAFETY: **Caller**; the functions take what the C library passes.
    let stream = unsafe { fopencookie(cookie, mode, functions) };
    if !stream.is_null() {
        let mut streams = STREAMS.lock().unwrap_or_else(PoisonError::into_inner);
        streams.insert(stream.addr(), number);
    }
    stream
}

/// The flags of a mode, as fopen(3) has them.
fn flags_of(mode: &[u8]) -> Option<c_int> {
    let rest = mode.get(1..)?;
    let both = rest.contains(&b'+');
    let (only, more) = match mode.first()? {
        b'r' => (libc::O_RDONLY, 0),
        b'w' => (libc::O_WRONLY, libc::O_CREAT | libc::O_TRUNC),
        b'a' => (libc::O_WRONLY, libc::O_CREAT | libc::O_APPEND),
        _ => return None,
    };
    let access = if both { libc::O_RDWR } else { only };
    let when = |letter, flag| if rest.contains(&letter) { flag } else { 0 };
    Some(access | more | when(b'e', libc::O_CLOEXEC) | when(b'x', libc::O_EXCL))
}

/// `fopen(3)`.
///
/// # Safety
/// **Caller**.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fopen(path: *const c_char, mode: *const c_char) -> *mut FILE {
    // SAFETY: **Caller**.
    let Some(path) = (unsafe { path::logged(AT_FDCWD, path) }) else {
        // SAFETY: **Caller**.
        return unsafe { next::fopen.get()(path, mode) };
    };
    // SAFETY: **Caller**.
    let flags = flags_of(unsafe { CStr::from_ptr(mode) }.to_bytes());
    let opened = flags.ok_or(libc::EINVAL);
    let number = answer(opened.and_then(|flags| open_logged(&path, flags)));
    match number < 0 {
        true => ptr::null_mut(),
        // SAFETY: **Caller**.
        false => unsafe { stream_of(number, mode) },
    }
}

/// `fdopen(3)`.
///
/// # Safety
/// **Caller**.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fdopen(number: c_int, mode: *const c_char) -> *mut FILE {
    // SAFETY: **Caller**.
    unsafe {
        match is_logged(number) {
            true => stream_of(number, mode),
            false => next::fdopen.get()(number, mode),
        }
    }
}

/// `fileno(3)`.
///
/// # Safety
/// **Caller**.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fileno(stream: *mut FILE) -> c_int {
    let streams = STREAMS.lock().unwrap_or_else(PoisonError::into_inner);
    let number = streams.get(&stream.addr()).copied();
    drop(streams);
    // SAFETY: **Caller**.
    number.unwrap_or_else(|| unsafe { next::fileno.get()(stream) })
}

also! {
    fopen64(path: *const c_char, mode: *const c_char) -> *mut FILE = fopen(path, mode);
    fileno_unlocked(stream: *mut FILE) -> c_int = fileno(stream);
}
