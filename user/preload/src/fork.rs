//! What a child has of its parent's sockets: their numbers, and nothing behind them. Calls say ENETDOWN, but for
//! close. The queue, its rings and its thread are the parent's, who notices nothing.

use std::cell::Cell;
use std::sync::MutexGuard;

use crate::numbers;
use crate::state::{self, State};

thread_local! {
    /// Held by who forks, so that the child finds the state whole.
    static FORKING: Cell<Option<MutexGuard<'static, State>>> = const { Cell::new(None) };
}

/// Runs when the library is loaded, before `main`.
#[used]
#[unsafe(link_section = ".init_array")]
static REGISTER: extern "C" fn() = register;

extern "C" fn register() {
    // SAFETY: the three functions have the right type and stay loaded.
    unsafe { libc::pthread_atfork(Some(prepare), Some(resume), Some(begin)) };
}

unsafe extern "C" fn prepare() {
    FORKING.set(Some(state::lock()));
}

unsafe extern "C" fn resume() {
    drop(FORKING.take());
}

unsafe extern "C" fn begin() {
    if let Some(mut state) = FORKING.take()
        && state.host().is_some()
    {
        numbers::become_a_child();
        state.become_a_child();
    }
}
