//! A mark in each free object, by which a second `free` is known at once.
//!
//! The problem: a magazine takes whatever it is given, so an object that was freed twice would
//! be handed out twice, and be noticed, if ever, when it goes back to its slab.
//!
//! The idea is that of glibc's tcache: a free object has a word that no program has reason to
//! store, here its own address mixed with a key of the process, and an object that is handed
//! out has not. A mark that was copied elsewhere is none, for the address is another; one that
//! a program makes by chance has odds of 1 to 2^64. The price is a comparison and a store by
//! `free` and a store by `malloc`, in memory that the program had or will have in its cache.
//!
//! Invariant **Mark**: each object of a size class has room for the word at [`AT`], and while
//! it is in use does not carry the mark by our doing.
//!
//! Not here: objects under `UMEM_DEBUG`, which have headers and patterns; an object that was
//! written to after its first `free`, whose slab still notices.

use core::ptr::NonNull;
use core::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// Bytes from an object's start to its mark. The first word is what programs overwrite most
/// when they use what they have freed.
const AT: usize = 8;

static KEY: AtomicUsize = AtomicUsize::new(0);

/// Chooses the key; before the first object is handed out.
pub fn choose_key() {
    // SAFETY: asks for a word of the program's start.
    let random = unsafe { libc::getauxval(libc::AT_RANDOM) } as *const [usize; 2];
    if !random.is_null() {
        // SAFETY: the kernel put 16 random bytes there (getauxval(3)), at any alignment.
        let [_, key] = unsafe { random.read_unaligned() };
        KEY.store(key, Relaxed);
    }
}

#[inline(always)]
fn mark_of(object: NonNull<u8>) -> usize {
    KEY.load(Relaxed) ^ object.addr().get()
}

#[inline(always)]
fn word_of(object: NonNull<u8>) -> *mut usize {
    object.as_ptr().wrapping_add(AT).cast()
}

/// Marks an object that was freed; false if it was marked before.
///
/// # Safety
/// `object` is in a slab of a size class, and nobody uses it.
#[inline(always)]
#[must_use = "an object that is free already must not be given to a magazine"]
pub unsafe fn set(object: NonNull<u8>) -> bool {
    let (word, mark) = (word_of(object), mark_of(object));
    // SAFETY: **Mark**; a pointer inside of an object may not be aligned.
    unsafe {
        if word.read_unaligned() == mark {
            return false;
        }
        word.write_unaligned(mark);
    }
    true
}

/// Takes the mark off an object that is about to be handed out.
///
/// # Safety
/// As for [`set`].
#[inline(always)]
pub unsafe fn clear(object: NonNull<u8>) {
    // SAFETY: as in `set`.
    unsafe { word_of(object).write_unaligned(0) };
}
