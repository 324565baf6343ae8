//! The end of a program. The kernel would send what its sockets still have; here it is done before the
//! program is gone, for a bounded time. A program that is killed sends nothing more: its peers find
//! nobody.

use std::ptr;

use base::Instant;

use crate::patience::{poll_files, readable};
use crate::state;

/// How long peers may take to acknowledge what was sent.
const PATIENCE_NANOS: u64 = 1_000_000_000;
/// How often it is looked at least.
const STEP_NANOS: u64 = 10_000_000;

/// Runs when the program ends.
#[used]
#[unsafe(link_section = ".fini_array")]
static AT_EXIT: extern "C" fn() = at_exit;

extern "C" fn at_exit() {
    // A thread or a handler that ends the program may be in the middle of a call.
    let Some(mut state) = state::try_lock() else {
        return;
    };
    let Some(host) = state.host().filter(|host| host.is_up()) else {
        return;
    };
    let end = Instant::from_nanos(state::now().as_nanos() + PATIENCE_NANOS);
    let mut left = host.close_all();
    while left != 0 && state::now() < end && host.is_up() {
        let mut files = [readable(state::descriptor(host))];
        poll_files(&mut files, Some(STEP_NANOS), ptr::null()).ok();
        host.turn(state::now());
        host.flush();
        left = host.orphans();
    }
}
