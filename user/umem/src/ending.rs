//! What happens when a thread, and when the program, ends.

use core::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

use crate::thread::{self, Thread};
use crate::{depots, settings, storage};

/// The key whose destructor runs at the end of each thread, plus one.
static KEY: AtomicUsize = AtomicUsize::new(0);
static KEY_MAKERS: AtomicU32 = AtomicU32::new(0);

/// Makes sure that the thread's objects are returned at its end. The C library may call
/// malloc for this; the thread's heap is in use by then as by any other call.
pub fn register(thread: *mut Thread) {
    if KEY.load(Ordering::Acquire) == 0 && KEY_MAKERS.fetch_add(1, Ordering::AcqRel) == 0 {
        let mut key = 0;
        // SAFETY: `key` is ours, and the destructor has the right type.
        if unsafe { libc::pthread_key_create(&mut key, Some(end)) } == 0 {
            KEY.store(key as usize + 1, Ordering::Release);
        }
    }
    if let Some(key) = KEY.load(Ordering::Acquire).checked_sub(1) {
        // SAFETY: the key exists.
        unsafe { libc::pthread_setspecific(key as libc::pthread_key_t, thread.cast()) };
    }
}

extern "C" fn end(thread: *mut libc::c_void) {
    // SAFETY: **Own**: `register` stored the calling thread's own storage.
    let thread = unsafe { &mut *thread.cast::<Thread>() };
    thread.end();
}

/// Runs when the program ends: an object that was freed twice and still lies in a magazine is
/// found at the latest now.
#[used]
#[unsafe(link_section = ".fini_array")]
static AT_EXIT: extern "C" fn() = at_exit;

extern "C" fn at_exit() {
    // SAFETY: **Own**.
    let thread = unsafe { &mut *thread::current() };
    // A signal handler may end the program in the middle of a slow path: then nothing is
    // known, and waiting for a lock would be for ever. (Between the two stores of a push is the
    // one place left where a handler that calls `exit`, as it must not, is told of a double free.)
    let is_quiet = !thread.is_changing() && depots::are_free() && storage::is_free();
    if !is_quiet || settings::debug().is_on() {
        return;
    }
    thread.flush();
    depots::purge();
}
