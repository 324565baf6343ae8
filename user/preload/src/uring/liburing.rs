//! liburing's functions that enter the kernel, by instructions of its own: ours stand in front of them, and pass on what is about
//! a ring that is the kernel's.

use std::ffi::{c_int, c_uint, c_void};
use std::ptr;
use std::sync::Arc;

use libc::{sigset_t, timespec};

use super::entering::{OwnRing, Patience, after};
use super::layout::{Cqe, IoUring};
use super::registering;
use super::table::{self, Found};
use super::taking;
use crate::next;
use crate::numbers::{self, Whose};
use crate::{config, state};

type At = *mut IoUring;

/// Whose a ring is that is about to be entered with so many entries.
///
/// # Safety
/// **Caller**.
unsafe fn found(at: At) -> Found {
    // SAFETY: **Caller**.
    let ring = unsafe { &mut *at };
    match table::find(ring.number) {
        Found::Kernels if config::get().is_none() => Found::Kernels,
        Found::Kernels => {
            if numbers::seen(ring.number) == Whose::Kernel {
                ring.learn();
            }
            // SAFETY: **Caller**. Publishing twice is publishing once.
            let given = unsafe { ring.publish() };
            taking::take_if_used(ring.number, given)
        }
        found => found,
    }
}

/// A ring of ours; else what is to be answered, or that it is the kernel's.
///
/// # Safety
/// **Caller**.
unsafe fn ours(at: At) -> Result<Arc<OwnRing>, Option<c_int>> {
    // SAFETY: **Caller**.
    match unsafe { found(at) } {
        Found::Ours(ring) => Ok(ring),
        Found::Kernels => Err(None),
        Found::Parents => {
            table::complain_of_parent();
            Err(Some(-libc::EOPNOTSUPP))
        }
    }
}

fn answer(entered: posix::Result<c_uint>) -> c_int {
    match entered {
        Ok(submitted) => submitted as c_int,
        Err(error) => -error.number(),
    }
}

/// What a call waits for.
fn patience(least: c_uint, time: Option<&timespec>, mask: *const sigset_t) -> Patience {
    Patience {
        least,
        until: time.map(|span| after(state::now(), span)),
        mask,
    }
}

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

/// `io_uring_queue_exit(3)`, which closes by instructions of its own.
///
/// # Safety
/// **Caller**.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn io_uring_queue_exit(at: At) {
    // SAFETY: **Caller**.
    let number = unsafe { (*at).number };
    if numbers::seen(number) == Whose::Ring {
        table::close(number);
    }
    // SAFETY: **Caller**.
    unsafe { next::io_uring_queue_exit.get()(at.cast()) }
}

/// Has the ring known before something is told of it.
///
/// # Safety
/// **Caller**.
unsafe fn tell(at: At, what: c_uint, with: *const c_void, count: c_uint) -> c_int {
    // SAFETY: **Caller**.
    let ring = unsafe { &*at };
    if numbers::seen(ring.number) == Whose::Kernel && config::get().is_some() {
        ring.learn();
    }
    // SAFETY: **Caller**.
    unsafe { registering::register(ring.number, what, with.cast_mut(), count) }
}

/// Declares functions of liburing's that pass a number of things to io_uring_register(2).
macro_rules! telling {
    ($($(#[$doc:meta])* $name:ident($($argument:ident: $type:ty),*) = ($what:expr, $with:expr, $count:expr);)*) => {
        $(
            $(#[$doc])*
            ///
            /// # Safety
            /// **Caller**.
            #[unsafe(no_mangle)]
            pub unsafe extern "C" fn $name(at: At $(, $argument: $type)*) -> c_int {
                // SAFETY: **Caller**.
                unsafe { tell(at, $what, $with, $count) }
            }
        )*
    };
}

telling! {
    /// `io_uring_register_buffers(3)`.
    io_uring_register_buffers(all: *const c_void, count: c_uint) = (0, all, count);
    /// `io_uring_unregister_buffers(3)`.
    io_uring_unregister_buffers() = (1, ptr::null(), 0);
    /// `io_uring_register_files(3)`.
    io_uring_register_files(all: *const c_int, count: c_uint) = (2, all.cast(), count);
    /// `io_uring_unregister_files(3)`.
    io_uring_unregister_files() = (3, ptr::null(), 0);
    /// `io_uring_register_eventfd(3)`.
    io_uring_register_eventfd(eventfd: c_int) = (4, (&raw const eventfd).cast(), 1);
    /// `io_uring_unregister_eventfd(3)`.
    io_uring_unregister_eventfd() = (5, ptr::null(), 0);
    /// `io_uring_register_eventfd_async(3)`.
    io_uring_register_eventfd_async(eventfd: c_int) = (7, (&raw const eventfd).cast(), 1);
    /// `io_uring_register_files_update(3)`.
    io_uring_register_files_update(first: c_uint, all: *const c_int, count: c_uint) =
        (6, [u64::from(first), all as u64].as_ptr().cast(), count);
    /// `io_uring_register_buf_ring(3)`.
    io_uring_register_buf_ring(ring: *const c_void, _flags: c_uint) = (22, ring, 1);
    /// `io_uring_unregister_buf_ring(3)`.
    io_uring_unregister_buf_ring(group: c_int) =
        (23, [0, u64::from(group as u16) << 32, 0, 0, 0].as_ptr().cast(), 1);
}
