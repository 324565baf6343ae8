//! What a newer library does for the older one that it replaces (`exchange`).
//!
//! The older one finds [`sietch_successor_1`] and calls its functions in the order in which they stand there, from one
//! thread. The number in the name changes when they do; what [`take`](Successor::take) reads has a version of
//! its own (`posix`, `checkpoint`). From [`prepare`] to [`serve`] or [`renounce`] this library's state is locked, so that
//! a call that comes through before all is there waits, and a fork, too.

use std::cell::Cell;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::slice;
use std::sync::MutexGuard;

use crate::numbers::{self, Whose};
use crate::state::{self, State};
use crate::{config, next};
use sietch_io::QueueConfig;

/// See the module. Functions that can fail return a number of errno(3), or zero.
#[repr(C)]
pub struct Successor {
    /// The function that stands behind this library's of that name.
    pub behind: unsafe extern "C" fn(name: *const c_char, function: *mut c_void),
    /// Opens a queue of the link with this name, beside the older one's. The address and the gateway, zero if there is
    /// none, are numbers; `queue` is set to the queue's.
    pub prepare: unsafe extern "C" fn(
        link: *const c_char,
        address: u32,
        prefix_len: u8,
        gateway: u32,
        queue: *mut u16,
    ) -> c_int,
    /// Makes all sockets of what the older host has left; how many connections.
    pub take: unsafe extern "C" fn(bytes: *const u8, len: usize, connections: *mut usize) -> c_int,
    /// Hears a frame that came to the older queue.
    pub hear: unsafe extern "C" fn(frame: *const u8, len: usize),
    /// Begins to serve.
    pub serve: extern "C" fn(),
    /// Forgets all: the older one goes on.
    pub renounce: extern "C" fn(),
}

/// See the module.
#[unsafe(no_mangle)]
#[used]
#[allow(non_upper_case_globals, reason = "as in C")]
pub static sietch_successor_1: Successor = Successor {
    behind,
    prepare,
    take,
    hear,
    serve,
    renounce,
};

thread_local! {
    /// Held from `prepare` on.
    static ARRIVING: Cell<Option<MutexGuard<'static, State>>> = const { Cell::new(None) };
}

/// Does something with the state; `otherwise` if it is not prepared.
fn with_state<T>(otherwise: T, run: impl FnOnce(&mut State) -> T) -> T {
    let Some(mut state) = ARRIVING.take() else {
        return otherwise;
    };
    let done = run(&mut state);
    ARRIVING.set(Some(state));
    done
}

unsafe extern "C" fn behind(name: *const c_char, function: *mut c_void) {
    // SAFETY: the older library passes a name that ends with a zero.
    let name = unsafe { CStr::from_ptr(name) };
    let ours = next::ALL.iter().filter(|behind| behind.name == name);
    ours.for_each(|behind| behind.set(function));
}

unsafe extern "C" fn prepare(
    link: *const c_char,
    address: u32,
    prefix_len: u8,
    gateway: u32,
    queue: *mut u16,
) -> c_int {
    // SAFETY: as in `behind`.
    let link = unsafe { CStr::from_ptr(link) }.to_string_lossy();
    let address = sietch_io::Address::new(address.into(), prefix_len);
    let Some(address) = address else {
        return libc::EINVAL;
    };
    let mut config = config::sized(QueueConfig::new(&link, address));
    config.gateway = (gateway != 0).then(|| gateway.into());
    if !config::adopt(config.clone()) {
        return libc::EBUSY;
    }
    let mut state = state::lock();
    match state.open_quietly(&config::beside(&config)) {
        Ok(()) => {
            // SAFETY: the older library passes a place for it.
            unsafe { *queue = state.queue().unwrap_or(u16::MAX) };
            ARRIVING.set(Some(state));
            0
        }
        Err(error) => error.raw_os_error().unwrap_or(libc::EBUSY),
    }
}

unsafe extern "C" fn take(bytes: *const u8, len: usize, connections: *mut usize) -> c_int {
    // SAFETY: the older library passes as many bytes as it says.
    let bytes = unsafe { slice::from_raw_parts(bytes, len) };
    with_state(libc::EINVAL, |state| {
        let Some(host) = state.host() else {
            return libc::EINVAL;
        };
        let restored = match host.restore(bytes, state::now()) {
            Ok(restored) => restored,
            Err(error) => return error.number(),
        };
        let name = |numbers: &[u32], whose| {
            let all = numbers.iter().map(|number| number.cast_signed());
            all.for_each(|number| numbers::set(number, whose));
        };
        name(&restored.sockets, Whose::Socket);
        name(&restored.sets, Whose::Set);
        // SAFETY: the older library passes a place for it.
        unsafe { *connections = restored.connections };
        0
    })
}

unsafe extern "C" fn hear(frame: *const u8, len: usize) {
    // SAFETY: as in `take`.
    let frame = unsafe { slice::from_raw_parts(frame, len) };
    with_state((), |state| {
        if let Some(host) = state.host() {
            host.hear(frame, state::now());
        }
    });
}

extern "C" fn serve() {
    if let Some(mut state) = ARRIVING.take() {
        if let Some(host) = state.host() {
            host.turn(state::now());
            host.flush();
        }
        state.start_threads();
    }
}

extern "C" fn renounce() {
    if let Some(mut state) = ARRIVING.take() {
        state.close_quietly();
    }
}
