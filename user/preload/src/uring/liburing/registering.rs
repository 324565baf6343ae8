//! liburing's functions that pass a number of things to io_uring_register(2).

use std::ffi::{c_int, c_uint, c_void};
use std::ptr;

use super::At;
use crate::config;
use crate::numbers::{self, Whose};
use crate::uring::registering;

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
