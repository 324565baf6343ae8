//! The end of a program. The kernel would send what its sockets still have; here it is done before the
//! program is gone, for as long as peers take any of it. A program that is killed sends nothing more: its peers find
//! nobody.

use std::ffi::c_int;
use std::process;
use std::ptr;
use std::sync::MutexGuard;
use std::sync::atomic::{AtomicI32, Ordering::Relaxed};
use std::thread;
use std::time::Duration;

use posix::Host;

use crate::logged;
use crate::next;
use crate::patience::{poll_files, readable};
use crate::state::{self, Port, State};
use crate::stdio;

/// How long peers may take nothing: as long as Linux keeps a closed connection that waits (`tcp_fin_timeout`).
const PATIENCE_NANOS: u64 = 60_000_000_000;
/// How often it is looked at least.
const STEP_NANOS: u64 = 10_000_000;
/// How long children have to claim what they have inherited, and how often it is looked.
const CLAIMS_MAX: Duration = Duration::from_secs(2);
const CLAIMS_LOOK: Duration = Duration::from_millis(2);
/// How often the lock is asked for, at most and while it seems to be our own, and how long apart. Who claims a connection has it
/// for a minute at most.
const LOCK_TRIES_MAX: u32 = 100_000;
const OWN_TRIES: u32 = 100;
const LOCK_STEP: Duration = Duration::from_millis(1);

/// Runs when the program ends.
#[used]
#[unsafe(link_section = ".fini_array")]
static AT_EXIT: extern "C" fn() = at_exit;

extern "C" fn at_exit() {
    end(true);
}

/// Closes all; `is_orderly` if what the program has printed and not flushed goes out before.
fn end(is_orderly: bool) {
    if is_orderly {
        stdio::flush();
    }
    logged::end();
    let mut states = stop();
    states.iter_mut().for_each(|state| state.renounce_loans());
    let hosts = states.iter_mut().filter_map(|state| state.host());
    let mut hosts: Vec<_> = hosts.filter(|host| host.is_up()).collect();
    hosts.iter_mut().for_each(|host| host.close_all());
    for host in hosts {
        deliver(host);
    }
}

/// Locks all. Who claims a connection in the meantime may have it first: one that stands still would end without a word to its
/// peer.
fn stop() -> Vec<MutexGuard<'static, State>> {
    loop {
        wait_for_claims();
        let all = 0..state::PLACES as u8;
        let states: Vec<_> = all.filter_map(lock).collect();
        if !states.iter().any(|state| state.is_giving()) {
            return states;
        }
    }
}

/// The process in whose memory the library is. A child of vfork(2) has its parent's.
static PROCESS: AtomicI32 = AtomicI32::new(0);

/// Notes who we are, when the library is loaded and in a child.
pub extern "C" fn note_process() {
    // SAFETY: no memory is passed.
    PROCESS.store(unsafe { libc::getpid() }, Relaxed);
}

/// Whether the calling process is the one in whose memory the library is.
pub fn is_own_process() -> bool {
    // SAFETY: no memory is passed.
    unsafe { libc::getpid() == PROCESS.load(Relaxed) }
}

/// Runs when the library is loaded.
#[used]
#[unsafe(link_section = ".init_array")]
static REGISTER: extern "C" fn() = note_process;

/// `_exit(2)`, by which children end that are to leave their parent's files alone. What they have sent goes to their peers
/// all the same.
#[unsafe(no_mangle)]
pub extern "C" fn _exit(status: c_int) -> ! {
    if is_own_process() {
        end(false);
    }
    // SAFETY: no memory is passed.
    unsafe { next::_exit.get()(status) };
    process::abort()
}

/// `_Exit(3)`, which is the same.
#[unsafe(no_mangle)]
pub extern "C" fn _Exit(status: c_int) -> ! {
    _exit(status)
}

/// Children may have connections of ours, and may not have used them yet; or we have those of a process that is to go on with
/// them. They have a moment for it: then their peers hear that we are gone.
pub fn wait_for_claims() {
    let mut waited = Duration::ZERO;
    if let Some(state) = lock(0) {
        state.return_lent();
    }
    let is_worth_waiting =
        |state: &State, waited| state.is_giving() || state.is_lending() && waited < CLAIMS_MAX;
    while lock(0).is_some_and(|state| is_worth_waiting(&state, waited)) {
        thread::sleep(CLAIMS_LOOK);
        waited += CLAIMS_LOOK;
    }
}

/// Waits for others, for without the lock no peer hears of the end. But a handler that ends the program may have interrupted who
/// has it, and would wait for itself.
fn lock(place: u8) -> Option<MutexGuard<'static, State>> {
    let mut own = 0;
    for _ in 0..LOCK_TRIES_MAX {
        let state = state::try_lock_at(place);
        if state.is_some() {
            return state;
        }
        own = if state::is_locked_by_us(place) {
            own + 1
        } else {
            0
        };
        if own == OWN_TRIES {
            return None;
        }
        thread::sleep(LOCK_STEP);
    }
    None
}

/// Sends what is left, until peers have it or take no more.
pub fn deliver(host: &mut Host<Port>) {
    let mut left = host.orphaned();
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
