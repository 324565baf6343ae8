//! open(2) and its kin.

use std::ffi::{c_char, c_int};

use libc::{AT_FDCWD, mode_t};

use super::{Result, answer, path, store};
use crate::next;
use crate::numbers;

/// Opens the file of an absolute path.
pub fn open_logged(path: &[u8], flags: c_int) -> Result<c_int> {
    if flags & (libc::O_DIRECTORY | libc::O_TMPFILE) != 0 {
        return Err(libc::ENOTDIR);
    }
    let mut logged = store::lock();
    let files = logged.files()?;
    let is_created = flags & libc::O_CREAT != 0;
    let file = match files.find(path) {
        Some(_) if is_created && flags & libc::O_EXCL != 0 => return Err(libc::EEXIST),
        Some(file) => {
            if flags & libc::O_TRUNC != 0 && flags & libc::O_ACCMODE != libc::O_RDONLY {
                files
                    .set_size(file, 0)
                    .map_err(|why| store::errno_of(&why))?;
            }
            file
        }
        None if is_created => files.create(path).map_err(|why| store::errno_of(&why))?,
        None => return Err(libc::ENOENT),
    };
    let number = place_holder(flags)?;
    let kept = libc::O_ACCMODE | libc::O_APPEND | libc::O_NONBLOCK | libc::O_SYNC | libc::O_DSYNC;
    logged.name(number, file, flags & kept)?;
    Ok(number)
}

/// A descriptor whose number is ours, and on which the kernel does nothing.
fn place_holder(flags: c_int) -> Result<c_int> {
    let flags = libc::O_PATH | flags & libc::O_CLOEXEC;
    // SAFETY: the path ends with a zero.
    let number =
        unsafe { libc::syscall(libc::SYS_openat, AT_FDCWD, c"/".as_ptr(), flags, 0) } as c_int;
    if number < 0 {
        return Err(crate::answer::errno());
    }
    if !numbers::has(number) {
        // SAFETY: nobody else has it.
        unsafe { libc::syscall(libc::SYS_close, number) };
        return Err(libc::EMFILE);
    }
    Ok(number)
}

/// `open(2)`, whose third argument may not be there.
///
/// # Safety
/// **Caller**.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn open(path: *const c_char, flags: c_int, mode: mode_t) -> c_int {
    // SAFETY: **Caller**.
    match unsafe { path::logged(AT_FDCWD, path) } {
        Some(path) => answer(open_logged(&path, flags)),
        // SAFETY: **Caller**.
        None => unsafe { next::open.get()(path, flags, mode) },
    }
}

/// `openat(2)`.
///
/// # Safety
/// **Caller**.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn openat(
    folder: c_int,
    path: *const c_char,
    flags: c_int,
    mode: mode_t,
) -> c_int {
    // SAFETY: **Caller**.
    match unsafe { path::logged(folder, path) } {
        Some(path) => answer(open_logged(&path, flags)),
        // SAFETY: **Caller**.
        None => unsafe { next::openat.get()(folder, path, flags, mode) },
    }
}

/// Other names of a function: with large files, and of programs that were built to have their flags checked.
macro_rules! also {
    ($($name:ident($($argument:ident: $type:ty),*) -> $result:ty = $of:expr;)*) => {
        $(
            /// See the function that it calls.
            ///
            /// # Safety
            /// **Caller**.
            #[unsafe(no_mangle)]
            #[allow(unused_unsafe, reason = "some pass no memory")]
            pub unsafe extern "C" fn $name($($argument: $type),*) -> $result {
                // SAFETY: **Caller**.
                unsafe { $of }
            }
        )*
    };
}
pub(super) use also;

const CREATED: c_int = libc::O_CREAT | libc::O_WRONLY | libc::O_TRUNC;

also! {
    open64(path: *const c_char, flags: c_int, mode: mode_t) -> c_int = open(path, flags, mode);
    openat64(folder: c_int, path: *const c_char, flags: c_int, mode: mode_t) -> c_int = openat(folder, path, flags, mode);
    creat(path: *const c_char, mode: mode_t) -> c_int = open(path, CREATED, mode);
    creat64(path: *const c_char, mode: mode_t) -> c_int = open(path, CREATED, mode);
    __open_2(path: *const c_char, flags: c_int) -> c_int = open(path, flags, 0);
    __open64_2(path: *const c_char, flags: c_int) -> c_int = open(path, flags, 0);
    __openat_2(folder: c_int, path: *const c_char, flags: c_int) -> c_int = openat(folder, path, flags, 0);
    __openat64_2(folder: c_int, path: *const c_char, flags: c_int) -> c_int = openat(folder, path, flags, 0);
}
