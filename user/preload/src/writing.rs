//! write, send and their kin.

use std::ffi::{c_int, c_void};
use std::io::IoSlice;
use std::ptr;

use libc::{iovec, msghdr, size_t, sockaddr, socklen_t, ssize_t};
use posix::{Endpoint, Errno, Result, SendOptions};

use crate::answer;
use crate::logged::{self, Transfer};
use crate::memory::{self, Name};
use crate::next;
use crate::numbers::{Whose, seen};
use crate::passing;
use crate::transfer::{self, is_ours};

/// Sends where no peer is named, so that it stays ours.
fn send_on(
    number: c_int,
    pieces: &[IoSlice<'_>],
    flags: c_int,
    again: impl FnOnce() -> ssize_t,
) -> ssize_t {
    let sent = transfer::send(number, pieces, flags, SendOptions::default())
        .map(Option::unwrap_or_default);
    answer::count_or(answer::broken_pipe(sent, flags), again)
}

/// `write(2)`.
///
/// # Safety
/// **Caller**.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn write(number: c_int, from: *const c_void, len: size_t) -> ssize_t {
    if !is_ours(number) {
        // SAFETY: **Caller**.
        return unsafe {
            match seen(number) {
                Whose::LogFile => {
                    logged::write(number, &[memory::piece(from, len)], Transfer::Here)
                }
                _ => next::write.get()(number, from, len),
            }
        };
    }
    // SAFETY: **Caller**.
    let again = || unsafe { next::write.get()(number, from, len) };
    // SAFETY: **Caller**.
    send_on(number, &[unsafe { memory::piece(from, len) }], 0, again)
}

/// `writev(2)`.
///
/// # Safety
/// **Caller**.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn writev(number: c_int, at: *const iovec, count: c_int) -> ssize_t {
    if !is_ours(number) {
        // SAFETY: **Caller**.
        return unsafe {
            match seen(number) {
                Whose::LogFile => logged::write_pieces(number, at, count, Transfer::Here),
                _ => next::writev.get()(number, at, count),
            }
        };
    }
    // SAFETY: **Caller**.
    match unsafe { memory::pieces(at, usize::try_from(count).unwrap_or(usize::MAX)) } {
        Ok(pieces) => {
            // SAFETY: **Caller**.
            let again = || unsafe { next::writev.get()(number, at, count) };
            send_on(number, &pieces, 0, again)
        }
        Err(error) => answer::count(Err(error)),
    }
}

/// `send(2)`.
///
/// # Safety
/// **Caller**.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn send(
    number: c_int,
    from: *const c_void,
    len: size_t,
    flags: c_int,
) -> ssize_t {
    // SAFETY: **Caller**.
    unsafe { sendto(number, from, len, flags, ptr::null(), 0) }
}

/// `sendto(2)`.
///
/// # Safety
/// **Caller**.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sendto(
    number: c_int,
    from: *const c_void,
    len: size_t,
    flags: c_int,
    name: *const sockaddr,
    name_len: socklen_t,
) -> ssize_t {
    let ours = is_ours(number).then(|| {
        // SAFETY: **Caller**.
        let to = unsafe { recipient(name, name_len) }?;
        // SAFETY: **Caller**.
        transfer::send(
            number,
            &[unsafe { memory::piece(from, len) }],
            flags,
            to.into(),
        )
    });
    match ours.and_then(Result::transpose) {
        Some(Ok(sent)) => answer::count(Ok(sent)),
        Some(Err(error)) if error != Errno::MOVED => {
            answer::count(answer::broken_pipe(Err(error), flags))
        }
        // SAFETY: **Caller**.
        _ => unsafe { next::sendto.get()(number, from, len, flags, name, name_len) },
    }
}

/// # Safety
/// **Caller**.
unsafe fn recipient(name: *const sockaddr, len: socklen_t) -> Result<Option<Endpoint>> {
    if name.is_null() || len == 0 {
        return Ok(None);
    }
    // SAFETY: **Caller**.
    match unsafe { memory::read_name(name, len) }? {
        Name::Inet(host, port) => Ok(Some(Endpoint::v4(host, port))),
        Name::Unspecified => Ok(None),
    }
}

/// `sendmsg(2)`.
///
/// # Safety
/// **Caller**.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sendmsg(number: c_int, header: *const msghdr, flags: c_int) -> ssize_t {
    // SAFETY: **Caller**.
    let message = unsafe { header.as_ref() }.filter(|_| is_ours(number));
    if message.is_none() {
        // SAFETY: **Caller**.
        let passed = unsafe { passing::prepare(header) };
        if let Err(error) = passed {
            return answer::count(Err(error));
        }
    }
    let ours = message.map(|message| {
        // SAFETY: **Caller**.
        let to = unsafe { recipient(message.msg_name.cast(), message.msg_namelen) }?;
        // SAFETY: **Caller**.
        let pieces = unsafe { memory::pieces(message.msg_iov, message.msg_iovlen) }?;
        // SAFETY: **Caller**.
        let control = unsafe { memory::bytes(message.msg_control, message.msg_controllen) };
        let own = SendOptions {
            to,
            ..posix::own_of(control)?
        };
        transfer::send(number, &pieces, flags, own)
    });
    match ours.and_then(Result::transpose) {
        Some(Ok(sent)) => answer::count(Ok(sent)),
        Some(Err(error)) if error != Errno::MOVED => {
            answer::count(answer::broken_pipe(Err(error), flags))
        }
        // SAFETY: **Caller**.
        _ => unsafe { next::sendmsg.get()(number, header, flags) },
    }
}
