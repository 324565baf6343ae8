//! libumem's own interface to sized memory (`include/umem.h`); its caches are in `caches`.

use core::ffi::{c_int, c_void};
use core::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use crate::abi;

const NOFAIL: c_int = 0x100;
/// In a callback's answer: end with the status in the low byte.
const EXIT: c_int = 0x100;
/// The status without a callback.
const EXIT_STATUS: c_int = 255;

static CALLBACK: AtomicUsize = AtomicUsize::new(0);

/// Asks again until there is memory, if the program said that it cannot do without.
pub fn insist(flags: c_int, mut allocate: impl FnMut() -> *mut u8) -> *mut c_void {
    loop {
        let memory = allocate();
        if !memory.is_null() || flags & NOFAIL == 0 {
            return memory.cast();
        }
        let answer = match CALLBACK.load(Relaxed) {
            0 => EXIT | EXIT_STATUS,
            // SAFETY: `umem_nofail_callback` stored a function of this type.
            call => unsafe { core::mem::transmute::<usize, extern "C" fn() -> c_int>(call)() },
        };
        if answer & EXIT != 0 {
            // SAFETY: ends the process.
            unsafe { libc::exit(answer & 0xff) };
        }
    }
}

/// Memory for `size` bytes.
#[unsafe(no_mangle)]
pub extern "C" fn umem_alloc(size: usize, flags: c_int) -> *mut c_void {
    insist(flags, || abi::allocate(size))
}

/// Memory for `size` bytes, all zeros.
#[unsafe(no_mangle)]
pub extern "C" fn umem_zalloc(size: usize, flags: c_int) -> *mut c_void {
    insist(flags, || abi::calloc(1, size).cast())
}

/// Frees what `umem_alloc` gave for `size`.
///
/// # Safety
/// Nobody uses `memory` any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn umem_free(memory: *mut c_void, _size: usize) {
    // SAFETY: the caller's promise.
    unsafe { abi::release(memory.cast()) };
}

/// What to do when memory that must not fail fails.
#[unsafe(no_mangle)]
pub extern "C" fn umem_nofail_callback(callback: Option<extern "C" fn() -> c_int>) {
    CALLBACK.store(callback.map_or(0, |call| call as usize), Relaxed);
}
