//! Arrays for magazines, in powers of two, kept for the next when given back.

use core::ptr::NonNull;

use slab::Round;

use crate::lock::Lock;
use crate::meta;

/// The longest array is a magazine of a thread with the largest cap.
const ORDERS: usize = 20;

struct Shelves([Option<NonNull<Round>>; ORDERS]);

// SAFETY: **Metadata**: arrays on the shelves are nobody's.
unsafe impl Send for Shelves {}

static SHELVES: Lock<Shelves> = Lock::new(Shelves([None; ORDERS]));

/// Room for 2^`order` rounds.
pub fn get(order: u32) -> Option<NonNull<Round>> {
    let mut shelves = SHELVES.lock();
    let shelf = shelves.0.get_mut(order as usize)?;
    match *shelf {
        Some(array) => {
            // SAFETY: an array on a shelf holds the link that `put` wrote.
            *shelf = unsafe { array.cast::<Option<NonNull<Round>>>().read() };
            Some(array)
        }
        None => Some(meta::alloc(size_of::<Round>() << order)?.cast()),
    }
}

/// Gives an array of 2^`order` rounds back.
pub fn put(array: NonNull<Round>, order: u32) {
    let mut shelves = SHELVES.lock();
    if let Some(shelf) = shelves.0.get_mut(order as usize) {
        // SAFETY: the array is nobody's, and has room for a link.
        unsafe { array.cast::<Option<NonNull<Round>>>().write(*shelf) };
        *shelf = Some(array);
    }
}

/// Whether nobody has the shelves, at this moment.
pub fn is_free() -> bool {
    SHELVES.is_free()
}

/// For `fork`.
pub fn acquire() {
    SHELVES.acquire();
}

/// For `fork`.
pub fn release() {
    SHELVES.release();
}
