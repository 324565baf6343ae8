//! The end of a program. The kernel would send what its sockets still have; here it is done before the
//! program is gone, for as long as peers take any of it. A program that is killed sends nothing more: its peers find
//! nobody.

use std::ptr;
use std::sync::MutexGuard;
use std::thread;
use std::time::Duration;

use posix::Host;

use crate::patience::{poll_files, readable};
use crate::state::{self, Port, State};

/// How long peers may take nothing: as long as Linux keeps a closed connection that waits (`tcp_fin_timeout`).
const PATIENCE_NANOS: u64 = 60_000_000_000;
/// How often it is looked at least.
const STEP_NANOS: u64 = 10_000_000;
/// How often the lock is asked for, and how long apart.
const LOCK_TRIES: u32 = 100;
const LOCK_STEP: Duration = Duration::from_millis(1);

/// Runs when the program ends.
#[used]
#[unsafe(link_section = ".fini_array")]
static AT_EXIT: extern "C" fn() = at_exit;

extern "C" fn at_exit() {
    let Some(mut state) = lock() else {
        return;
    };
    if let Some(host) = state.host().filter(|host| host.is_up()) {
        host.close_all();
        deliver(host);
    }
}

/// Others have the lock for moments. But a handler that ends the program may have interrupted who has it, and waits
/// for itself.
fn lock() -> Option<MutexGuard<'static, State>> {
    for _ in 0..LOCK_TRIES {
        let state = state::try_lock();
        if state.is_some() {
            return state;
        }
        thread::sleep(LOCK_STEP);
    }
    None
}

/// Sends what is left, until peers have it or take no more. What the program has printed does not wait for that.
fn deliver(host: &mut Host<Port>) {
    let mut left = host.orphaned();
    if left != 0 {
        // SAFETY: no stream means all of them.
        unsafe { libc::fflush(ptr::null_mut()) };
    }
    let mut taken_at = state::now();
    while left != 0 && host.is_up() && state::now().since(taken_at).as_nanos() < PATIENCE_NANOS {
        let mut files = [readable(state::descriptor(host))];
        poll_files(&mut files, Some(STEP_NANOS), ptr::null()).ok();
        host.turn(state::now());
        host.flush();
        let now_left = host.orphaned();
        if now_left < left {
            taken_at = state::now();
        }
        left = now_left;
    }
}
