//! sendfile to a socket of ours: the file's bytes are read and sent, for the kernel does not have the socket. splice
//! says that it cannot.

use std::ffi::{c_int, c_uint};
use std::io::IoSlice;
use std::mem::MaybeUninit;
use std::slice;

use libc::{off_t, off64_t, size_t, ssize_t};
use posix::{Direction, Errno, Gather, Result};

use crate::answer;
use crate::blocking::{Way, patiently};
use crate::next;
use crate::numbers::{Whose, whose};

/// Bytes that are read at once.
const STEP_BYTES: usize = 64 * 1024;
/// Bytes that are read without memory of the heap's: servers send small files for each request.
const SMALL_BYTES: usize = 4096;

/// `sendfile(2)`.
///
/// # Safety
/// **Caller**.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sendfile(
    to: c_int,
    from: c_int,
    offset: *mut off_t,
    count: size_t,
) -> ssize_t {
    if !matches!(whose(to), Whose::Socket | Whose::Parent) {
        // SAFETY: **Caller**.
        return unsafe { next::sendfile.get()(to, from, offset, count) };
    }
    let again_at = offset;
    // SAFETY: **Caller**.
    let given = unsafe { offset.as_mut() };
    let start = match &given {
        Some(offset) => **offset,
        // SAFETY: no memory is passed.
        None => unsafe { libc::lseek(from, 0, libc::SEEK_CUR) },
    };
    let sent = match start < 0 {
        true => Err(Errno::INVALID),
        false => send_from(to, from, start, count),
    };
    if let Ok(count) = sent {
        let end = start + count as off_t;
        match given {
            Some(offset) => *offset = end,
            // SAFETY: no memory is passed.
            None => drop(unsafe { libc::lseek(from, end, libc::SEEK_SET) }),
        }
    }
    // SAFETY: **Caller**.
    let again = || unsafe { next::sendfile.get()(to, from, again_at, count) };
    answer::count_or(answer::broken_pipe(sent, 0), again)
}

/// The same under the name that programs with large files have for it.
///
/// # Safety
/// **Caller**.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sendfile64(
    to: c_int,
    from: c_int,
    offset: *mut off_t,
    count: size_t,
) -> ssize_t {
    // SAFETY: **Caller**.
    unsafe { sendfile(to, from, offset, count) }
}

/// `splice(2)`, which the kernel does for its own files only; a program that hears so copies.
///
/// # Safety
/// **Caller**.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn splice(
    from: c_int,
    from_at: *mut off64_t,
    to: c_int,
    to_at: *mut off64_t,
    count: size_t,
    flags: c_uint,
) -> ssize_t {
    let is_ours = |number| matches!(whose(number), Whose::Socket | Whose::Parent);
    if is_ours(from) || is_ours(to) {
        return answer::count(Err(Errno::INVALID));
    }
    // SAFETY: **Caller**.
    unsafe { next::splice.get()(from, from_at, to, to_at, count, flags) }
}

fn send_from(to: c_int, from: c_int, start: off_t, count: usize) -> Result<usize> {
    let mut small = [const { MaybeUninit::<u8>::uninit() }; SMALL_BYTES];
    let mut large = Vec::new();
    let room = match count <= SMALL_BYTES {
        true => &mut small[..],
        false => {
            large.reserve_exact(STEP_BYTES.min(count));
            large.spare_capacity_mut()
        }
    };
    let mut done = 0;
    while done < count {
        let step = room.len().min(count - done);
        let at = start + done as off_t;
        // SAFETY: there is so much room.
        let read = unsafe { libc::pread(from, room.as_mut_ptr().cast(), step, at) };
        let read = usize::try_from(read).map_err(|_| Errno::INVALID)?;
        if read == 0 {
            break;
        }
        // SAFETY: so many bytes were read.
        let bytes = unsafe { slice::from_raw_parts(room.as_ptr().cast::<u8>(), read) };
        let pieces = [IoSlice::new(bytes)];
        let mut gather = Gather::new(&pieces);
        let way = Way::of(Direction::Send, 0);
        let outcome = patiently(to, way, |host, open| host.put(open, &mut gather));
        done += gather.done();
        match outcome {
            Err(error) if done == 0 => return Err(error),
            Err(_) => break,
            Ok(()) => {}
        }
    }
    Ok(done)
}
