//! fopen(3): the C library's streams read and write by system calls that nobody stands in front of, so a stream of a file of
//! ours is ours, too (`stdio`).

use std::ffi::{CStr, c_char, c_int};
use std::ptr;

use libc::{AT_FDCWD, FILE};

use super::opening::{also, open_logged};
use super::{answer, path};
use crate::next;
use crate::stdio;

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
        false => unsafe { stdio::open(number, mode) },
    }
}

also! {
    fopen64(path: *const c_char, mode: *const c_char) -> *mut FILE = fopen(path, mode);
}
