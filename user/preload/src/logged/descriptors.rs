//! What is asked of a descriptor: bytes, offsets, length, copies.

use std::ffi::{c_int, c_void};

use libc::{iovec, off_t, size_t, ssize_t};
use sietch_io::storage::LogFiles;

use super::opening::also;
use super::store::{self, Description, Logged, errno_of};
use super::{Result, answer, names};
use crate::memory;
use crate::next;
use crate::numbers::{Whose, seen};

/// Bytes of one call, as Linux has it.
const CALL_BYTES_MAX: usize = 0x7fff_f000;

#[inline]
pub fn is_logged(number: c_int) -> bool {
    seen(number) == Whose::LogFile
}

/// Where a call reads or writes.
#[derive(Clone, Copy)]
pub enum Transfer {
    /// Where the descriptor is, which goes on.
    Here,
    /// There.
    At(off_t),
}

impl Transfer {
    fn start(self, description: &Description) -> Result<u64> {
        match self {
            Self::Here => Ok(description.offset),
            Self::At(offset) => u64::try_from(offset).map_err(|_| libc::EINVAL),
        }
    }
}

fn fill(number: c_int, pieces: &mut [std::io::IoSliceMut<'_>], way: Transfer) -> Result<usize> {
    let mut logged = store::lock();
    let (files, description) = logged.described(number)?;
    if !description.is_readable() {
        return Err(libc::EBADF);
    }
    let start = way.start(description)?;
    let mut done = 0;
    for piece in pieces {
        let room = piece.len().min(CALL_BYTES_MAX - done);
        let read = files.read(description.file, start + done as u64, &mut piece[..room]);
        let count = read.map_err(|why| errno_of(&why))?;
        done += count;
        if count < piece.len() {
            break;
        }
    }
    if matches!(way, Transfer::Here) {
        description.offset = start + done as u64;
    }
    Ok(done)
}

fn put(number: c_int, pieces: &[std::io::IoSlice<'_>], way: Transfer) -> Result<usize> {
    let mut logged = store::lock_beside();
    while logged.is_out && !is_gathered_at_once(&mut logged, number, pieces)? {
        logged = store::wait(logged);
    }
    let (files, description) = logged.described(number)?;
    if !description.is_writable() {
        return Err(libc::EBADF);
    }
    // With O_APPEND Linux writes at the end even by pwrite.
    let start = match description.flags & libc::O_APPEND {
        0 => way.start(description)?,
        _ => files.size(description.file).ok_or(libc::EBADF)?,
    };
    let done = put_all(files, description, start, pieces)?;
    if matches!(way, Transfer::Here) {
        description.offset = start + done as u64;
    }
    if description.flags & (libc::O_SYNC | libc::O_DSYNC) != 0 {
        files.sync(description.file).map_err(|why| errno_of(&why))?;
    }
    Ok(done)
}

/// Whether the device is not needed for a write.
fn is_gathered_at_once(
    logged: &mut Logged,
    number: c_int,
    pieces: &[std::io::IoSlice<'_>],
) -> Result<bool> {
    let (files, description) = logged.described(number)?;
    let is_synced = description.flags & (libc::O_SYNC | libc::O_DSYNC) != 0;
    let bytes = pieces.iter().map(|piece| piece.len()).sum();
    Ok(!is_synced && files.fits(bytes, pieces.len()))
}

/// Bytes that were written; an error if none was.
fn put_all(
    files: &mut LogFiles,
    description: &Description,
    start: u64,
    pieces: &[std::io::IoSlice<'_>],
) -> Result<usize> {
    let mut done = 0;
    for piece in pieces {
        let bytes = &piece[..piece.len().min(CALL_BYTES_MAX - done)];
        match files.write(description.file, start + done as u64, bytes) {
            Ok(()) => done += bytes.len(),
            Err(why) if done == 0 => return Err(errno_of(&why)),
            Err(_) => break,
        }
    }
    Ok(done)
}

/// `read(2)` and its kin on a number of ours.
pub fn read(number: c_int, pieces: &mut [std::io::IoSliceMut<'_>], way: Transfer) -> ssize_t {
    answer(fill(number, pieces, way).map(|count| count as ssize_t))
}

/// `write(2)` and its kin on a number of ours.
pub fn write(number: c_int, pieces: &[std::io::IoSlice<'_>], way: Transfer) -> ssize_t {
    answer(put(number, pieces, way).map(|count| count as ssize_t))
}

/// The program has closed it, or has put something else in its place.
pub fn close(number: c_int) {
    store::lock().close(number);
}

/// `new` is a copy of `old`, one of ours.
pub fn copied(old: c_int, new: c_int) {
    store::lock().copy(old, new);
}

/// `fcntl(2)` on a number of ours, if it is not for the kernel: flags, which those of the kernel's descriptor are not.
pub fn control(number: c_int, command: c_int, argument: usize) -> Option<c_int> {
    const CHANGED: c_int = libc::O_APPEND | libc::O_NONBLOCK;
    let mut logged = store::lock();
    let described = logged.described(number);
    let done = match command {
        libc::F_GETFL => described.map(|(_, description)| description.flags),
        libc::F_SETFL => described.map(|(_, description)| {
            description.flags &= !CHANGED;
            description.flags |= argument as c_int & CHANGED;
            0
        }),
        _ => return None,
    };
    Some(answer(done))
}

pub fn describe_number(number: c_int) -> Result<libc::stat> {
    let mut logged = store::lock();
    let (files, description) = logged.described(number)?;
    names::describe(files, description.file)
}

/// `fstat(2)`.
///
/// # Safety
/// **Caller**.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fstat(number: c_int, to: *mut libc::stat) -> c_int {
    // SAFETY: **Caller**.
    unsafe {
        match is_logged(number) {
            true => names::tell(describe_number(number), to),
            false => next::fstat.get()(number, to),
        }
    }
}

fn seek(number: c_int, offset: off_t, whence: c_int) -> Result<off_t> {
    let mut logged = store::lock();
    let (files, description) = logged.described(number)?;
    let size = files.size(description.file).ok_or(libc::EBADF)? as off_t;
    let from = match whence {
        libc::SEEK_SET => 0,
        libc::SEEK_CUR => description.offset as off_t,
        libc::SEEK_END => size,
        // All of a file is data, as where a file system knows no holes.
        libc::SEEK_DATA if (0..size).contains(&offset) => 0,
        libc::SEEK_HOLE if (0..size).contains(&offset) => size - offset,
        libc::SEEK_DATA | libc::SEEK_HOLE => return Err(libc::ENXIO),
        _ => return Err(libc::EINVAL),
    };
    let to = from.checked_add(offset).ok_or(libc::EOVERFLOW)?;
    description.offset = u64::try_from(to).map_err(|_| libc::EINVAL)?;
    Ok(to)
}

/// `lseek(2)`.
#[unsafe(no_mangle)]
pub extern "C" fn lseek(number: c_int, offset: off_t, whence: c_int) -> off_t {
    match is_logged(number) {
        true => answer(seek(number, offset, whence)),
        // SAFETY: no memory is passed.
        false => unsafe { next::lseek.get()(number, offset, whence) },
    }
}

fn cut(number: c_int, size: off_t) -> Result<c_int> {
    let size = u64::try_from(size).map_err(|_| libc::EINVAL)?;
    let mut logged = store::lock();
    let (files, description) = logged.described(number)?;
    if !description.is_writable() {
        return Err(libc::EINVAL);
    }
    let done = files.set_size(description.file, size);
    done.map_err(|why| errno_of(&why))?;
    Ok(0)
}

/// `ftruncate(2)`.
#[unsafe(no_mangle)]
pub extern "C" fn ftruncate(number: c_int, size: off_t) -> c_int {
    match is_logged(number) {
        true => answer(cut(number, size)),
        // SAFETY: no memory is passed.
        false => unsafe { next::ftruncate.get()(number, size) },
    }
}

/// `fallocate(2)`: a log has no room that is set aside for a file.
#[unsafe(no_mangle)]
pub extern "C" fn fallocate(number: c_int, mode: c_int, offset: off_t, len: off_t) -> c_int {
    match is_logged(number) {
        true => answer(Err(libc::EOPNOTSUPP)),
        // SAFETY: no memory is passed.
        false => unsafe { next::fallocate.get()(number, mode, offset, len) },
    }
}

/// `posix_fallocate(3)`, which gives the reason back.
#[unsafe(no_mangle)]
pub extern "C" fn posix_fallocate(number: c_int, offset: off_t, len: off_t) -> c_int {
    match is_logged(number) {
        true => libc::EOPNOTSUPP,
        // SAFETY: no memory is passed.
        false => unsafe { next::posix_fallocate.get()(number, offset, len) },
    }
}

/// `posix_fadvise(2)`: there is no cache that could be told.
#[unsafe(no_mangle)]
pub extern "C" fn posix_fadvise(number: c_int, offset: off_t, len: off_t, advice: c_int) -> c_int {
    match is_logged(number) {
        true => 0,
        // SAFETY: no memory is passed.
        false => unsafe { next::posix_fadvise.get()(number, offset, len, advice) },
    }
}

/// `pread(2)`.
///
/// # Safety
/// **Caller**.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pread(
    number: c_int,
    to: *mut c_void,
    len: size_t,
    offset: off_t,
) -> ssize_t {
    // SAFETY: **Caller**.
    unsafe {
        match is_logged(number) {
            true => read(
                number,
                &mut [memory::piece_mut(to, len)],
                Transfer::At(offset),
            ),
            false => next::pread.get()(number, to, len, offset),
        }
    }
}

/// `pwrite(2)`.
///
/// # Safety
/// **Caller**.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pwrite(
    number: c_int,
    from: *const c_void,
    len: size_t,
    offset: off_t,
) -> ssize_t {
    // SAFETY: **Caller**.
    unsafe {
        match is_logged(number) {
            true => write(number, &[memory::piece(from, len)], Transfer::At(offset)),
            false => next::pwrite.get()(number, from, len, offset),
        }
    }
}

/// `preadv(2)`.
///
/// # Safety
/// **Caller**.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn preadv(
    number: c_int,
    at: *const iovec,
    count: c_int,
    offset: off_t,
) -> ssize_t {
    // SAFETY: **Caller**.
    unsafe {
        match is_logged(number) {
            true => read_pieces(number, at, count, Transfer::At(offset)),
            false => next::preadv.get()(number, at, count, offset),
        }
    }
}

/// `pwritev(2)`.
///
/// # Safety
/// **Caller**.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pwritev(
    number: c_int,
    at: *const iovec,
    count: c_int,
    offset: off_t,
) -> ssize_t {
    // SAFETY: **Caller**.
    unsafe {
        match is_logged(number) {
            true => write_pieces(number, at, count, Transfer::At(offset)),
            false => next::pwritev.get()(number, at, count, offset),
        }
    }
}

/// `readv(2)` on a number of ours.
///
/// # Safety
/// **Caller**.
pub unsafe fn read_pieces(number: c_int, at: *const iovec, count: c_int, way: Transfer) -> ssize_t {
    // SAFETY: **Caller**.
    match unsafe { memory::pieces_mut(at, usize::try_from(count).unwrap_or(usize::MAX)) } {
        Ok(mut pieces) => read(number, &mut pieces, way),
        Err(error) => crate::answer::count(Err(error)),
    }
}

/// `writev(2)` on a number of ours.
///
/// # Safety
/// **Caller**.
pub unsafe fn write_pieces(
    number: c_int,
    at: *const iovec,
    count: c_int,
    way: Transfer,
) -> ssize_t {
    // SAFETY: **Caller**.
    match unsafe { memory::pieces(at, usize::try_from(count).unwrap_or(usize::MAX)) } {
        Ok(pieces) => write(number, &pieces, way),
        Err(error) => crate::answer::count(Err(error)),
    }
}

also! {
    fstat64(number: c_int, to: *mut libc::stat) -> c_int = fstat(number, to);
    lseek64(number: c_int, offset: off_t, whence: c_int) -> off_t = lseek(number, offset, whence);
    ftruncate64(number: c_int, size: off_t) -> c_int = ftruncate(number, size);
    fallocate64(number: c_int, mode: c_int, offset: off_t, len: off_t) -> c_int = fallocate(number, mode, offset, len);
    posix_fallocate64(number: c_int, offset: off_t, len: off_t) -> c_int = posix_fallocate(number, offset, len);
    posix_fadvise64(number: c_int, offset: off_t, len: off_t, advice: c_int) -> c_int = posix_fadvise(number, offset, len, advice);
    pread64(number: c_int, to: *mut c_void, len: size_t, offset: off_t) -> ssize_t = pread(number, to, len, offset);
    pwrite64(number: c_int, from: *const c_void, len: size_t, offset: off_t) -> ssize_t = pwrite(number, from, len, offset);
    preadv64(number: c_int, at: *const iovec, count: c_int, offset: off_t) -> ssize_t = preadv(number, at, count, offset);
    pwritev64(number: c_int, at: *const iovec, count: c_int, offset: off_t) -> ssize_t = pwritev(number, at, count, offset);
}
