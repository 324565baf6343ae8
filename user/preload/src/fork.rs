//! What a child has of its parent's sockets. The queue, its rings and its thread are the parent's. Listeners and sockets
//! for datagrams are opened again when the child uses the first of them, on another queue of the same link (`posix`,
//! `inherit`); a connection that the child uses is claimed from the parent (`lending`).
//!
//! A program that gives up its rights before it does so has them opened then: a queue needs them.

use libc::uid_t;
use std::cell::Cell;
use std::ffi::c_int;

use crate::exit;
use crate::logged;
use crate::next;
use crate::ring_hooks::{self, Hooks};
use crate::shards::{self, Stopped};
use crate::state;

thread_local! {
    /// Held by who forks, so that the child finds the state whole.
    static FORKING: Cell<Option<Stopped>> = const { Cell::new(None) };
}

/// Runs when the library is loaded, before `main`.
#[used]
#[unsafe(link_section = ".init_array")]
static REGISTER: extern "C" fn() = register;

extern "C" fn register() {
    // SAFETY: the three functions have the right type and stay loaded.
    unsafe { libc::pthread_atfork(Some(prepare), Some(resume), Some(begin)) };
}

/// Rings of io_uring hear of it, if there are any.
fn tell_rings(what: impl Fn(&Hooks) -> fn()) {
    if let Some(hooks) = ring_hooks::get() {
        what(hooks)();
    }
}

unsafe extern "C" fn prepare() {
    let mut stopped = shards::stop();
    stopped.states[0].prepare_for_child();
    FORKING.set(Some(stopped));
    tell_rings(|hooks| hooks.stop);
    logged::stop();
}

unsafe extern "C" fn resume() {
    logged::go_on();
    tell_rings(|hooks| hooks.go_on);
    if let Some(mut stopped) = FORKING.take() {
        stopped.states[0].go_on_beside_child();
    }
}

unsafe extern "C" fn begin() {
    logged::become_a_child();
    tell_rings(|hooks| hooks.become_a_child);
    if let Some(mut stopped) = FORKING.take() {
        stopped.states[0].become_a_child();
        stopped.forget_further();
    }
    exit::note_process();
}

/// `setuid(2)`.
#[unsafe(no_mangle)]
pub extern "C" fn setuid(user: uid_t) -> c_int {
    state::claim_while_we_may();
    // SAFETY: no memory is passed.
    unsafe { next::setuid.get()(user) }
}

/// `setreuid(2)`.
#[unsafe(no_mangle)]
pub extern "C" fn setreuid(real: uid_t, effective: uid_t) -> c_int {
    state::claim_while_we_may();
    // SAFETY: no memory is passed.
    unsafe { next::setreuid.get()(real, effective) }
}

/// `setresuid(2)`.
#[unsafe(no_mangle)]
pub extern "C" fn setresuid(real: uid_t, effective: uid_t, saved: uid_t) -> c_int {
    state::claim_while_we_may();
    // SAFETY: no memory is passed.
    unsafe { next::setresuid.get()(real, effective, saved) }
}
