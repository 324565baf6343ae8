//! `fork` while other threads allocate: the child gets a heap with no lock held.

use crate::{caches, debug, depots, meta, spans, storage};

/// Runs when the library is loaded, before `main`.
#[used]
#[unsafe(link_section = ".init_array")]
static REGISTER: extern "C" fn() = register;

extern "C" fn register() {
    // SAFETY: the three functions have the right type and stay loaded.
    unsafe { libc::pthread_atfork(Some(prepare), Some(resume), Some(resume)) };
}

/// Takes every lock, in the order of the crate's theory.
unsafe extern "C" fn prepare() {
    caches::acquire();
    debug::acquire();
    depots::acquire();
    spans::acquire();
    storage::acquire();
    meta::acquire();
}

unsafe extern "C" fn resume() {
    meta::release();
    storage::release();
    spans::release();
    depots::release();
    debug::release();
    caches::release();
}
