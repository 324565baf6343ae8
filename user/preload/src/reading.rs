//! read, recv and their kin.

use std::ffi::{c_int, c_void};
use std::ptr;

use libc::{iovec, msghdr, size_t, sockaddr, socklen_t, ssize_t};

use crate::ancillary;
use crate::answer;
use crate::logged::{self, Transfer};
use crate::memory;
use crate::next;
use crate::numbers::{Whose, seen};
use crate::transfer::{self, is_ours};

/// `read(2)`.
///
/// # Safety
/// **Caller**.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn read(number: c_int, to: *mut c_void, len: size_t) -> ssize_t {
    if !is_ours(number) {
        // SAFETY: **Caller**.
        return unsafe {
            match seen(number) {
                Whose::LogFile => {
                    logged::read(number, &mut [memory::piece_mut(to, len)], Transfer::Here)
                }
                _ => next::read.get()(number, to, len),
            }
        };
    }
    // SAFETY: **Caller**.
    let mut pieces = [unsafe { memory::piece_mut(to, len) }];
    let received = transfer::receive(number, &mut pieces, 0).map(|received| received.count);
    // SAFETY: **Caller**.
    answer::count_or(received, || unsafe { next::read.get()(number, to, len) })
}

/// `read(2)` of a program that was built to have its memory checked.
///
/// # Safety
/// **Caller**.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __read_chk(
    number: c_int,
    to: *mut c_void,
    len: size_t,
    room: size_t,
) -> ssize_t {
    check_room(len, room);
    // SAFETY: **Caller**.
    unsafe { read(number, to, len) }
}

/// As the C library does.
fn check_room(len: size_t, room: size_t) {
    if len > room {
        std::process::abort();
    }
}

/// `readv(2)`.
///
/// # Safety
/// **Caller**.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn readv(number: c_int, at: *const iovec, count: c_int) -> ssize_t {
    if !is_ours(number) {
        // SAFETY: **Caller**.
        return unsafe {
            match seen(number) {
                Whose::LogFile => logged::read_pieces(number, at, count, Transfer::Here),
                _ => next::readv.get()(number, at, count),
            }
        };
    }
    // SAFETY: **Caller**.
    let pieces = unsafe { memory::pieces_mut(at, usize::try_from(count).unwrap_or(usize::MAX)) };
    let received = pieces.and_then(|mut pieces| transfer::receive(number, &mut pieces, 0));
    let again = || {
        // SAFETY: **Caller**.
        unsafe { next::readv.get()(number, at, count) }
    };
    answer::count_or(received.map(|received| received.count), again)
}

/// `recv(2)`.
///
/// # Safety
/// **Caller**.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn recv(
    number: c_int,
    to: *mut c_void,
    len: size_t,
    flags: c_int,
) -> ssize_t {
    // SAFETY: **Caller**.
    unsafe { recvfrom(number, to, len, flags, ptr::null_mut(), ptr::null_mut()) }
}

/// `recv(2)` of a program that was built to have its memory checked.
///
/// # Safety
/// **Caller**.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __recv_chk(
    number: c_int,
    to: *mut c_void,
    len: size_t,
    room: size_t,
    flags: c_int,
) -> ssize_t {
    check_room(len, room);
    // SAFETY: **Caller**.
    unsafe { recv(number, to, len, flags) }
}

/// `recvfrom(2)`.
///
/// # Safety
/// **Caller**.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn recvfrom(
    number: c_int,
    to: *mut c_void,
    len: size_t,
    flags: c_int,
    name: *mut sockaddr,
    name_len: *mut socklen_t,
) -> ssize_t {
    if !is_ours(number) {
        // SAFETY: **Caller**.
        return unsafe { next::recvfrom.get()(number, to, len, flags, name, name_len) };
    }
    let again = || {
        // SAFETY: **Caller**.
        unsafe { next::recvfrom.get()(number, to, len, flags, name, name_len) }
    };
    if let Some(thrown) = transfer::throw_away(number, len, flags) {
        return answer::count_or(thrown, again);
    }
    // SAFETY: **Caller**.
    let mut pieces = [unsafe { memory::piece_mut(to, len) }];
    let received = transfer::receive(number, &mut pieces, flags).and_then(|received| {
        match received.heard.map(|heard| heard.from) {
            // SAFETY: **Caller**.
            Some(from) => unsafe { memory::tell_name(name, name_len, from) }?,
            // A stream's bytes have no sender of their own.
            None if !name.is_null() && !name_len.is_null() => {
                // SAFETY: **Caller**.
                unsafe { *name_len = 0 };
            }
            None => {}
        }
        Ok(received.count)
    });
    answer::count_or(received, again)
}

/// `recvfrom(2)` of a program that was built to have its memory checked.
///
/// # Safety
/// **Caller**.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __recvfrom_chk(
    number: c_int,
    to: *mut c_void,
    len: size_t,
    room: size_t,
    flags: c_int,
    name: *mut sockaddr,
    name_len: *mut socklen_t,
) -> ssize_t {
    check_room(len, room);
    // SAFETY: **Caller**.
    unsafe { recvfrom(number, to, len, flags, name, name_len) }
}

/// `recvmsg(2)`.
///
/// # Safety
/// **Caller**.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn recvmsg(number: c_int, header: *mut msghdr, flags: c_int) -> ssize_t {
    // SAFETY: **Caller**.
    let ours = unsafe { header.as_mut() }.filter(|_| is_ours(number));
    let Some(message) = ours else {
        // SAFETY: **Caller**.
        return unsafe { next::recvmsg.get()(number, header, flags) };
    };
    // SAFETY: **Caller**.
    let pieces = unsafe { memory::pieces_mut(message.msg_iov, message.msg_iovlen) };
    let received = pieces.and_then(|mut pieces| transfer::receive(number, &mut pieces, flags));
    let told = received.map(|received| {
        message.msg_namelen = match received.heard.map(|heard| heard.from) {
            Some(from) if !message.msg_name.is_null() => {
                let room = message.msg_namelen as usize;
                // SAFETY: **Caller**.
                unsafe { memory::write_name(message.msg_name, room, from) }
            }
            _ => 0,
        };
        let told = ancillary::told(number, &received, message.msg_controllen);
        // SAFETY: **Caller**: there is so much room, and what is told is no longer.
        message.msg_controllen = told.as_ref().map_or(0, |told| unsafe {
            memory::put(message.msg_control, &told.bytes)
        });
        let is_cut = told.is_some_and(|told| told.is_cut);
        message.msg_flags = received.flags | if is_cut { libc::MSG_CTRUNC } else { 0 };
        received.count
    });
    // SAFETY: **Caller**.
    answer::count_or(told, || unsafe {
        next::recvmsg.get()(number, header, flags)
    })
}
