//! The functions that programs call. C++'s operators call malloc and free.

use core::ffi::{c_int, c_void};
use core::ptr::{self, NonNull};

use slab::LARGEST;

use crate::sys::{PAGE, set_errno};
use crate::{decay, map, mark, plain, realloc, slow, thread};

/// The usual malloc: a pop.
#[inline(always)]
pub fn allocate(size: usize) -> *mut u8 {
    match plain::pop(size) {
        Some(object) => object.as_ptr(),
        None => slow::malloc(size),
    }
}

/// The usual free: a push.
///
/// # Safety
/// Nobody uses `memory` any more, which is null or was allocated here.
#[inline(always)]
pub unsafe fn release(memory: *mut u8) {
    let Some(object) = NonNull::new(memory) else {
        return;
    };
    // SAFETY: an allocation succeeded, so the map is prepared.
    let index = unsafe { map::get(memory) };
    // SAFETY: **Own**: the reference ends with the push. Addresses without a class have a
    // magazine without room.
    let heap = unsafe { &mut (*thread::current()).heap };
    if !heap.magazine_at(index as usize).push(object) {
        return slow::free(memory);
    }
    // SAFETY: only size classes have magazines with room; nobody uses the object any more.
    if !unsafe { mark::set(object) } {
        slow::refuse_free(object);
    }
}

/// `malloc(3)`.
#[unsafe(no_mangle)]
pub extern "C" fn malloc(size: usize) -> *mut c_void {
    allocate(size).cast()
}

/// `free(3)`.
///
/// # Safety
/// As in C.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn free(memory: *mut c_void) {
    // SAFETY: the caller's promise.
    unsafe { release(memory.cast()) };
}

/// `calloc(3)`.
#[unsafe(no_mangle)]
pub extern "C" fn calloc(count: usize, size: usize) -> *mut c_void {
    let Some(bytes) = count.checked_mul(size) else {
        set_errno(libc::ENOMEM);
        return ptr::null_mut();
    };
    if bytes > LARGEST {
        return slow::zeroed(bytes).cast();
    }
    let memory = allocate(bytes);
    if !memory.is_null() {
        // SAFETY: the memory is ours and that long.
        unsafe { ptr::write_bytes(memory, 0, bytes) };
    }
    memory.cast()
}

/// `realloc(3)`. A size of zero frees, as in glibc.
///
/// # Safety
/// As in C.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn realloc(memory: *mut c_void, size: usize) -> *mut c_void {
    let Some(object) = NonNull::new(memory.cast::<u8>()) else {
        return malloc(size);
    };
    if size == 0 {
        // SAFETY: the caller's promise.
        unsafe { release(memory.cast()) };
        return ptr::null_mut();
    }
    realloc::resize(object, size).cast()
}

/// `reallocarray(3)`.
///
/// # Safety
/// As in C.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn reallocarray(
    memory: *mut c_void,
    count: usize,
    size: usize,
) -> *mut c_void {
    match count.checked_mul(size) {
        // SAFETY: the caller's promise.
        Some(bytes) => unsafe { realloc(memory, bytes) },
        None => {
            set_errno(libc::ENOMEM);
            ptr::null_mut()
        }
    }
}

/// `posix_memalign(3)`.
///
/// # Safety
/// `result` is writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn posix_memalign(
    result: *mut *mut c_void,
    align: usize,
    size: usize,
) -> c_int {
    if !align.is_power_of_two() || !align.is_multiple_of(size_of::<*mut c_void>()) {
        return libc::EINVAL;
    }
    let memory = slow::aligned(align, size);
    if memory.is_null() {
        return libc::ENOMEM;
    }
    // SAFETY: the caller's promise.
    unsafe { *result = memory.cast() };
    0
}

/// `aligned_alloc(3)`.
#[unsafe(no_mangle)]
pub extern "C" fn aligned_alloc(align: usize, size: usize) -> *mut c_void {
    if !align.is_power_of_two() {
        set_errno(libc::EINVAL);
        return ptr::null_mut();
    }
    slow::aligned(align, size).cast()
}

/// `memalign(3)`.
#[unsafe(no_mangle)]
pub extern "C" fn memalign(align: usize, size: usize) -> *mut c_void {
    aligned_alloc(align, size)
}

/// `valloc(3)`.
#[unsafe(no_mangle)]
pub extern "C" fn valloc(size: usize) -> *mut c_void {
    aligned_alloc(PAGE, size)
}

/// `pvalloc(3)`.
#[unsafe(no_mangle)]
pub extern "C" fn pvalloc(size: usize) -> *mut c_void {
    aligned_alloc(PAGE, size.checked_next_multiple_of(PAGE).unwrap_or(size))
}

/// `malloc_usable_size(3)`.
///
/// # Safety
/// As in C.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn malloc_usable_size(memory: *mut c_void) -> usize {
    NonNull::new(memory.cast()).map_or(0, slow::usable)
}

/// `malloc_trim(3)`: returns what is free, the calling thread's magazines included.
#[unsafe(no_mangle)]
pub extern "C" fn malloc_trim(_keep: usize) -> c_int {
    // SAFETY: **Own**.
    unsafe { (*thread::current()).flush() };
    decay::purge();
    1
}

/// `mallinfo2(3)`: addresses in segments, and what of it is in use by slabs and spans.
#[unsafe(no_mangle)]
pub extern "C" fn mallinfo2() -> libc::mallinfo2 {
    let stats = crate::spans::lock().stats();
    // SAFETY: zeros are valid for a structure of numbers.
    let mut info: libc::mallinfo2 = unsafe { core::mem::zeroed() };
    info.arena = stats.mapped;
    info.uordblks = stats.used;
    info.fordblks = stats.mapped - stats.used;
    info
}
