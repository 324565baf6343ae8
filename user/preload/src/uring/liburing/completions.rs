//! liburing's functions that wait for completions: they enter the ring until there are enough, and say where the first lies.

use std::ffi::{c_int, c_uint};
use std::ptr;
use std::sync::Arc;

use libc::{sigset_t, timespec};

use super::layout::Cqe;
use super::{At, ours, patience};
use crate::next;
use crate::uring::entering::{OwnRing, Patience};

/// `_io_uring_get_cqe` of liburing: submits, and waits until there are completions.
///
/// # Safety
/// **Caller**.
unsafe fn get(
    at: At,
    ring: &Arc<OwnRing>,
    to: *mut *mut Cqe,
    mut given: c_uint,
    patience: &Patience,
) -> c_int {
    let (mut error, mut has_looked) = (0, false);
    loop {
        // SAFETY: **Caller**.
        let (cqe, count) = unsafe { (*at).peek() };
        // SAFETY: **Caller**.
        unsafe { to.write(cqe) };
        let is_idle = cqe.is_null() && patience.least == 0 && given == 0;
        if is_idle && has_looked {
            return if error < 0 { error } else { -libc::EAGAIN };
        }
        if given == 0 && !is_idle && patience.least <= count {
            return error;
        }
        if has_looked && patience.until.is_some() {
            return if cqe.is_null() && error >= 0 {
                -libc::ETIME
            } else {
                error
            };
        }
        let again = Patience { ..*patience };
        match ring.enter(given, Some(again)) {
            Ok(submitted) => {
                given -= submitted.min(given);
                if !has_looked {
                    error = submitted as c_int;
                }
            }
            Err(refused) => return if error < 0 { error } else { -refused.number() },
        }
        if !cqe.is_null() {
            return error;
        }
        has_looked = true;
    }
}

/// `__io_uring_get_cqe`, which liburing's inline functions call.
///
/// # Safety
/// **Caller**.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __io_uring_get_cqe(
    at: At,
    to: *mut *mut Cqe,
    given: c_uint,
    least: c_uint,
    mask: *const sigset_t,
) -> c_int {
    // SAFETY: **Caller**.
    unsafe {
        match ours(at) {
            Ok(ring) => get(at, &ring, to, given, &patience(least, None, mask)).min(0),
            Err(said) => said.unwrap_or_else(|| {
                next::__io_uring_get_cqe.get()(at.cast(), to.cast(), given, least, mask)
            }),
        }
    }
}

/// `io_uring_wait_cqes(3)`.
///
/// # Safety
/// **Caller**.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn io_uring_wait_cqes(
    at: At,
    to: *mut *mut Cqe,
    least: c_uint,
    time: *const timespec,
    mask: *const sigset_t,
) -> c_int {
    // SAFETY: **Caller**.
    unsafe {
        match ours(at) {
            Ok(ring) => get(at, &ring, to, 0, &patience(least, time.as_ref(), mask)).min(0),
            Err(said) => said.unwrap_or_else(|| {
                next::io_uring_wait_cqes.get()(at.cast(), to.cast(), least, time, mask)
            }),
        }
    }
}

/// `io_uring_wait_cqe_timeout(3)`.
///
/// # Safety
/// **Caller**.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn io_uring_wait_cqe_timeout(
    at: At,
    to: *mut *mut Cqe,
    time: *const timespec,
) -> c_int {
    // SAFETY: **Caller**.
    unsafe { io_uring_wait_cqes(at, to, 1, time, ptr::null()) }
}

/// `io_uring_submit_and_wait_timeout(3)`.
///
/// # Safety
/// **Caller**.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn io_uring_submit_and_wait_timeout(
    at: At,
    to: *mut *mut Cqe,
    least: c_uint,
    time: *const timespec,
    mask: *const sigset_t,
) -> c_int {
    // SAFETY: **Caller**.
    unsafe {
        match ours(at) {
            Ok(ring) => {
                let given = (*at).publish();
                get(at, &ring, to, given, &patience(least, time.as_ref(), mask))
            }
            Err(said) => said.unwrap_or_else(|| {
                let behind = next::io_uring_submit_and_wait_timeout.get();
                behind(at.cast(), to.cast(), least, time, mask)
            }),
        }
    }
}

/// `io_uring_peek_batch_cqe(3)`.
///
/// # Safety
/// **Caller**.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn io_uring_peek_batch_cqe(
    at: At,
    to: *mut *mut Cqe,
    most: c_uint,
) -> c_uint {
    // SAFETY: **Caller**.
    unsafe {
        let ring = match ours(at) {
            Ok(ring) => ring,
            Err(None) => return next::io_uring_peek_batch_cqe.get()(at.cast(), to.cast(), most),
            Err(Some(_)) => return 0,
        };
        if (*at).peek().1 == 0 {
            // Nobody hears that it went wrong.
            ring.enter(0, Some(patience(0, None, ptr::null()))).ok();
        }
        let all = &(*at).completions;
        let count = (*at).peek().1.min(most);
        let head = all.head.read();
        for index in 0..count {
            let place = (head.wrapping_add(index) & all.ring_mask) as usize;
            to.add(index as usize).write(all.completions.add(place));
        }
        count
    }
}
