//! What is asked of a path: stat, access, rename, unlink, truncate.

use std::ffi::{c_char, c_int, c_uint};
use std::mem;

use libc::{AT_FDCWD, off_t};
use sietch_io::storage::{FileNumber, LogFiles};

use super::descriptors::{describe_number, is_logged};
use super::opening::also;
use super::{Result, answer, path, store};
use crate::next;

/// The device that files on a log seem to be on: none that the kernel has.
const DEVICE: u64 = 0x7369;
const BLOCK_BYTES: i64 = 4096;
const SECTOR_BYTES: u64 = 512;

/// What fstat(2) says of a file: times are not kept, and rights are those of the area.
pub fn describe(files: &LogFiles, file: FileNumber) -> Result<libc::stat> {
    let size = files.size(file).ok_or(libc::EBADF)?;
    // SAFETY: it is numbers, all of which may be zero.
    let mut said: libc::stat = unsafe { mem::zeroed() };
    said.st_dev = DEVICE;
    said.st_ino = file.get() + 1;
    said.st_mode = libc::S_IFREG | 0o600;
    said.st_nlink = u64::from(files.has_name(file));
    // SAFETY: no memory is passed.
    (said.st_uid, said.st_gid) = unsafe { (libc::geteuid(), libc::getegid()) };
    said.st_size = size as off_t;
    said.st_blksize = BLOCK_BYTES;
    said.st_blocks = size.div_ceil(SECTOR_BYTES) as i64;
    Ok(said)
}

fn describe_path(path: &[u8]) -> Result<libc::stat> {
    let mut logged = store::lock();
    let files = logged.files()?;
    let file = files.find(path).ok_or(libc::ENOENT)?;
    describe(files, file)
}

/// # Safety
/// **Caller**: there is room for one.
pub unsafe fn tell(said: Result<libc::stat>, to: *mut libc::stat) -> c_int {
    // SAFETY: **Caller**.
    answer(said.map(|said| unsafe { to.write(said) }).map(|()| 0))
}

/// `stat(2)`.
///
/// # Safety
/// **Caller**.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn stat(path: *const c_char, to: *mut libc::stat) -> c_int {
    // SAFETY: **Caller**.
    unsafe {
        match path::logged(AT_FDCWD, path) {
            Some(path) => tell(describe_path(&path), to),
            None => next::stat.get()(path, to),
        }
    }
}

/// `lstat(2)`.
///
/// # Safety
/// **Caller**.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lstat(path: *const c_char, to: *mut libc::stat) -> c_int {
    // SAFETY: **Caller**.
    unsafe {
        match path::logged(AT_FDCWD, path) {
            Some(path) => tell(describe_path(&path), to),
            None => next::lstat.get()(path, to),
        }
    }
}

/// `fstatat(2)`; without a path it is [`fstat`](super::descriptors::fstat).
///
/// # Safety
/// **Caller**.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fstatat(
    folder: c_int,
    path: *const c_char,
    to: *mut libc::stat,
    flags: c_int,
) -> c_int {
    // SAFETY: **Caller**.
    unsafe {
        if flags & libc::AT_EMPTY_PATH != 0 && !path.is_null() && *path == 0 {
            return super::descriptors::fstat(folder, to);
        }
        match path::logged(folder, path) {
            Some(path) => tell(describe_path(&path), to),
            None => next::fstatat.get()(folder, path, to, flags),
        }
    }
}

/// The same as statx(2) has it.
fn widen(said: &libc::stat) -> libc::statx {
    // SAFETY: it is numbers, all of which may be zero.
    let mut wide: libc::statx = unsafe { mem::zeroed() };
    wide.stx_mask = libc::STATX_BASIC_STATS;
    wide.stx_blksize = said.st_blksize as u32;
    wide.stx_nlink = said.st_nlink as u32;
    (wide.stx_uid, wide.stx_gid) = (said.st_uid, said.st_gid);
    wide.stx_mode = said.st_mode as u16;
    wide.stx_ino = said.st_ino;
    wide.stx_size = said.st_size as u64;
    wide.stx_blocks = said.st_blocks as u64;
    wide.stx_dev_minor = DEVICE as u32;
    wide
}

/// `statx(2)`.
///
/// # Safety
/// **Caller**.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn statx(
    folder: c_int,
    path: *const c_char,
    flags: c_int,
    mask: c_uint,
    to: *mut libc::statx,
) -> c_int {
    // SAFETY: **Caller**.
    unsafe {
        let is_empty = path.is_null() || *path == 0;
        let said = match path::logged(folder, path) {
            Some(path) => describe_path(&path),
            None if is_empty && is_logged(folder) => describe_number(folder),
            None => return next::statx.get()(folder, path, flags, mask, to),
        };
        answer(said.map(|said| to.write(widen(&said))).map(|()| 0))
    }
}

/// Who has the area may all but run files of it.
fn access_path(path: &[u8], mode: c_int) -> Result<c_int> {
    describe_path(path)?;
    match mode & libc::X_OK {
        0 => Ok(0),
        _ => Err(libc::EACCES),
    }
}

/// `access(2)`.
///
/// # Safety
/// **Caller**.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn access(path: *const c_char, mode: c_int) -> c_int {
    // SAFETY: **Caller**.
    match unsafe { path::logged(AT_FDCWD, path) } {
        Some(path) => answer(access_path(&path, mode)),
        // SAFETY: **Caller**.
        None => unsafe { next::access.get()(path, mode) },
    }
}

/// `faccessat(2)`.
///
/// # Safety
/// **Caller**.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn faccessat(
    folder: c_int,
    path: *const c_char,
    mode: c_int,
    flags: c_int,
) -> c_int {
    // SAFETY: **Caller**.
    match unsafe { path::logged(folder, path) } {
        Some(path) => answer(access_path(&path, mode)),
        // SAFETY: **Caller**.
        None => unsafe { next::faccessat.get()(folder, path, mode, flags) },
    }
}

/// Both names are of files on the log, or neither is.
fn rename_paths(
    from: Option<Vec<u8>>,
    to: Option<Vec<u8>>,
    flags: c_uint,
) -> Option<Result<c_int>> {
    let (from, to) = match (from, to) {
        (None, None) => return None,
        (Some(from), Some(to)) => (from, to),
        _ => return Some(Err(libc::EXDEV)),
    };
    Some(rename_logged(&from, &to, flags))
}

fn rename_logged(from: &[u8], to: &[u8], flags: c_uint) -> Result<c_int> {
    if flags & !libc::RENAME_NOREPLACE != 0 {
        return Err(libc::EINVAL);
    }
    let mut logged = store::lock();
    let files = logged.files()?;
    let file = files.find(from).ok_or(libc::ENOENT)?;
    if flags & libc::RENAME_NOREPLACE != 0 && files.find(to).is_some() {
        return Err(libc::EEXIST);
    }
    // As POSIX has it: one file under both names stays.
    if from != to {
        files
            .rename(file, to)
            .map_err(|why| store::errno_of(&why))?;
    }
    Ok(0)
}

/// `renameat2(2)`.
///
/// # Safety
/// **Caller**.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn renameat2(
    from_folder: c_int,
    from: *const c_char,
    to_folder: c_int,
    to: *const c_char,
    flags: c_uint,
) -> c_int {
    // SAFETY: **Caller**.
    unsafe {
        let (old, new) = (path::logged(from_folder, from), path::logged(to_folder, to));
        match rename_paths(old, new, flags) {
            Some(renamed) => answer(renamed),
            None => next::renameat2.get()(from_folder, from, to_folder, to, flags),
        }
    }
}

/// `renameat(2)`.
///
/// # Safety
/// **Caller**.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn renameat(
    from_folder: c_int,
    from: *const c_char,
    to_folder: c_int,
    to: *const c_char,
) -> c_int {
    // SAFETY: **Caller**.
    unsafe {
        let (old, new) = (path::logged(from_folder, from), path::logged(to_folder, to));
        match rename_paths(old, new, 0) {
            Some(renamed) => answer(renamed),
            None => next::renameat.get()(from_folder, from, to_folder, to),
        }
    }
}

/// `rename(2)`.
///
/// # Safety
/// **Caller**.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rename(from: *const c_char, to: *const c_char) -> c_int {
    // SAFETY: **Caller**.
    unsafe {
        let (old, new) = (path::logged(AT_FDCWD, from), path::logged(AT_FDCWD, to));
        match rename_paths(old, new, 0) {
            Some(renamed) => answer(renamed),
            None => next::rename.get()(from, to),
        }
    }
}

fn unlink_path(path: &[u8]) -> Result<c_int> {
    let mut logged = store::lock();
    let files = logged.files()?;
    let file = files.find(path).ok_or(libc::ENOENT)?;
    files.remove(file).map_err(|why| store::errno_of(&why))?;
    Ok(0)
}

/// `unlink(2)`.
///
/// # Safety
/// **Caller**.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn unlink(path: *const c_char) -> c_int {
    // SAFETY: **Caller**.
    match unsafe { path::logged(AT_FDCWD, path) } {
        Some(path) => answer(unlink_path(&path)),
        // SAFETY: **Caller**.
        None => unsafe { next::unlink.get()(path) },
    }
}

/// `remove(3)`.
///
/// # Safety
/// **Caller**.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn remove(path: *const c_char) -> c_int {
    // SAFETY: **Caller**.
    match unsafe { path::logged(AT_FDCWD, path) } {
        Some(path) => answer(unlink_path(&path)),
        // SAFETY: **Caller**.
        None => unsafe { next::remove.get()(path) },
    }
}

/// `unlinkat(2)`.
///
/// # Safety
/// **Caller**.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn unlinkat(folder: c_int, path: *const c_char, flags: c_int) -> c_int {
    // SAFETY: **Caller**.
    match unsafe { path::logged(folder, path) } {
        Some(_) if flags & libc::AT_REMOVEDIR != 0 => answer(Err(libc::ENOTDIR)),
        Some(path) => answer(unlink_path(&path)),
        // SAFETY: **Caller**.
        None => unsafe { next::unlinkat.get()(folder, path, flags) },
    }
}

fn truncate_path(path: &[u8], size: off_t) -> Result<c_int> {
    let size = u64::try_from(size).map_err(|_| libc::EINVAL)?;
    let mut logged = store::lock();
    let files = logged.files()?;
    let file = files.find(path).ok_or(libc::ENOENT)?;
    files
        .set_size(file, size)
        .map_err(|why| store::errno_of(&why))?;
    Ok(0)
}

/// `truncate(2)`.
///
/// # Safety
/// **Caller**.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn truncate(path: *const c_char, size: off_t) -> c_int {
    // SAFETY: **Caller**.
    match unsafe { path::logged(AT_FDCWD, path) } {
        Some(path) => answer(truncate_path(&path, size)),
        // SAFETY: **Caller**.
        None => unsafe { next::truncate.get()(path, size) },
    }
}

also! {
    stat64(path: *const c_char, to: *mut libc::stat) -> c_int = stat(path, to);
    lstat64(path: *const c_char, to: *mut libc::stat) -> c_int = lstat(path, to);
    fstatat64(folder: c_int, path: *const c_char, to: *mut libc::stat, flags: c_int) -> c_int = fstatat(folder, path, to, flags);
    truncate64(path: *const c_char, size: off_t) -> c_int = truncate(path, size);
}
