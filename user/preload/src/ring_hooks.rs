//! What rings of io_uring hear of numbers. Whoever closes, copies or waits for a number tells it here, and `uring`, which uses all
//! of those, says what is to be done as soon as the program has a ring.

use std::ffi::c_int;
use std::sync::OnceLock;

/// What `uring` does.
pub struct Hooks {
    /// A ring's number is closed.
    pub close: fn(c_int),
    /// A socket's number is closed, or its socket has become the kernel's; whether anybody waits who has to be woken.
    pub note_closed: fn(c_int) -> bool,
    pub note_moved: fn(c_int) -> bool,
    /// Somebody is about to wait for a ring's number, by epoll or poll; and for whatever has such numbers.
    pub note_polled: fn(c_int),
    pub before_wait: fn(),
    /// Whether any ring is ours.
    pub has_any: fn() -> bool,
    /// A fork begins, is over, and is over in the child.
    pub stop: fn(),
    pub go_on: fn(),
    pub become_a_child: fn(),
}

static HOOKS: OnceLock<Hooks> = OnceLock::new();

/// From now on there may be rings.
pub fn serve_by(hooks: Hooks) {
    // They are the same each time.
    HOOKS.set(hooks).ok();
}

/// What is done, once there may be rings.
#[inline]
pub fn get() -> Option<&'static Hooks> {
    HOOKS.get()
}

/// See [`Hooks::close`].
pub fn close(number: c_int) {
    if let Some(hooks) = get() {
        (hooks.close)(number);
    }
}

/// See [`Hooks::note_closed`].
pub fn note_closed(number: c_int) -> bool {
    get().is_some_and(|hooks| (hooks.note_closed)(number))
}

/// See [`Hooks::note_moved`].
pub fn note_moved(number: c_int) -> bool {
    get().is_some_and(|hooks| (hooks.note_moved)(number))
}

/// See [`Hooks::note_polled`].
#[inline]
pub fn note_polled(number: c_int) {
    if let Some(hooks) = get() {
        (hooks.note_polled)(number);
    }
}

/// See [`Hooks::before_wait`].
#[inline]
pub fn before_wait() {
    if let Some(hooks) = get() {
        (hooks.before_wait)();
    }
}

/// See [`Hooks::has_any`].
pub fn has_any() -> bool {
    get().is_some_and(|hooks| (hooks.has_any)())
}
