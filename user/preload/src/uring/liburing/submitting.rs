//! liburing's functions that submit: they enter the ring once, and say how many entries were taken.

use std::ffi::{c_int, c_uint};
use std::ptr;
use std::sync::Arc;

use super::{At, answer, ours, patience};
use crate::next;
use crate::uring::entering::OwnRing;

/// Submits what was given, and waits.
///
/// # Safety
/// **Caller**.
unsafe fn submit(at: At, ring: &Arc<OwnRing>, least: c_uint, is_getting: bool) -> c_int {
    // SAFETY: **Caller**.
    let (given, has_overflow) = unsafe { ((*at).publish(), (*at).has_overflow()) };
    let is_getting = is_getting || least != 0 || has_overflow;
    if given == 0 && !is_getting {
        return 0;
    }
    answer(ring.enter(
        given,
        is_getting.then(|| patience(least, None, ptr::null())),
    ))
}

/// `io_uring_submit(3)`.
///
/// # Safety
/// **Caller**.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn io_uring_submit(at: At) -> c_int {
    // SAFETY: **Caller**.
    unsafe {
        match ours(at) {
            Ok(ring) => submit(at, &ring, 0, false),
            Err(said) => said.unwrap_or_else(|| next::io_uring_submit.get()(at.cast())),
        }
    }
}

/// `io_uring_submit_and_wait(3)`.
///
/// # Safety
/// **Caller**.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn io_uring_submit_and_wait(at: At, least: c_uint) -> c_int {
    // SAFETY: **Caller**.
    unsafe {
        match ours(at) {
            Ok(ring) => submit(at, &ring, least, false),
            Err(said) => {
                said.unwrap_or_else(|| next::io_uring_submit_and_wait.get()(at.cast(), least))
            }
        }
    }
}

/// `io_uring_submit_and_get_events(3)`.
///
/// # Safety
/// **Caller**.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn io_uring_submit_and_get_events(at: At) -> c_int {
    // SAFETY: **Caller**.
    unsafe {
        match ours(at) {
            Ok(ring) => submit(at, &ring, 0, true),
            Err(said) => {
                said.unwrap_or_else(|| next::io_uring_submit_and_get_events.get()(at.cast()))
            }
        }
    }
}

/// `io_uring_get_events(3)`.
///
/// # Safety
/// **Caller**.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn io_uring_get_events(at: At) -> c_int {
    // SAFETY: **Caller**.
    unsafe {
        match ours(at) {
            Ok(ring) => answer(ring.enter(0, Some(patience(0, None, ptr::null())))),
            Err(said) => said.unwrap_or_else(|| next::io_uring_get_events.get()(at.cast())),
        }
    }
}
