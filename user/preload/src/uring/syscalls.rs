//! `syscall` and `mmap` in front of those of the C library: programs enter rings by the one and map them by the other.

use std::arch::asm;
use std::ffi::{c_int, c_long, c_uint, c_void};

use libc::{off_t, size_t};

use super::{entering, registering, table};
use crate::answer;
use crate::numbers::{Whose, seen};

/// A system call as the kernel answers it.
///
/// # Safety
/// **Caller**.
#[inline]
unsafe fn raw(number: c_long, arguments: [usize; 6]) -> isize {
    let [first, second, third, fourth, fifth, sixth] = arguments;
    let answer: isize;
    // SAFETY: the kernel changes these registers and memory that the call names (**Caller**).
    unsafe {
        asm!(
            "syscall",
            inlateout("rax") number as isize => answer,
            in("rdi") first, in("rsi") second, in("rdx") third,
            in("r10") fourth, in("r8") fifth, in("r9") sixth,
            lateout("rcx") _, lateout("r11") _,
            options(nostack),
        );
    }
    answer
}

/// io_uring_enter(2): entries, completions, flags; then a mask or an argument and its size. An error is a number below
/// zero.
///
/// # Safety
/// **Caller**.
pub unsafe fn raw_enter(
    number: c_int,
    [submit, least, flags]: [c_uint; 3],
    argument: *const c_void,
    bytes: usize,
) -> c_int {
    let arguments = [
        number as usize,
        submit as usize,
        least as usize,
        flags as usize,
        argument as usize,
        bytes,
    ];
    // SAFETY: **Caller**.
    (unsafe { raw(libc::SYS_io_uring_enter, arguments) }) as c_int
}

/// io_uring_register(2).
///
/// # Safety
/// **Caller**.
pub unsafe fn raw_register(
    number: c_int,
    what: c_uint,
    argument: *mut c_void,
    count: c_uint,
) -> c_int {
    let arguments = [
        number as usize,
        what as usize,
        argument as usize,
        count as usize,
        0,
        0,
    ];
    // SAFETY: **Caller**.
    (unsafe { raw(libc::SYS_io_uring_register, arguments) }) as c_int
}

fn answered(answer: isize) -> c_long {
    const ERRORS: isize = -4095;
    match answer {
        ERRORS..=-1 => {
            answer::set_errno(-(answer as c_int));
            -1
        }
        answer => answer as c_long,
    }
}

/// `syscall(2)`. Its arguments are as many as the call has; where fewer were passed the rest are whatever the registers have,
/// as in the C library's.
///
/// # Safety
/// **Caller**.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn syscall(
    number: c_long,
    first: usize,
    second: usize,
    third: usize,
    fourth: usize,
    fifth: usize,
    sixth: usize,
) -> c_long {
    let ring = first as c_int;
    let answer = match number {
        // SAFETY: **Caller**.
        libc::SYS_io_uring_enter => unsafe {
            let what = [second as c_uint, third as c_uint, fourth as c_uint];
            entering::enter(ring, what, fifth as *const c_void, sixth) as isize
        },
        // SAFETY: **Caller**.
        libc::SYS_io_uring_register => unsafe {
            let at = third as *mut c_void;
            registering::register(ring, second as c_uint, at, fourth as c_uint) as isize
        },
        number => {
            let arguments = [first, second, third, fourth, fifth, sixth];
            // SAFETY: **Caller**.
            let answer = unsafe { raw(number, arguments) };
            if number == libc::SYS_io_uring_setup && answer >= 0 {
                // SAFETY: **Caller**: the kernel has just filled it.
                unsafe { table::note_setup(answer as c_int, second as *const [u32; 30]) };
            }
            answer
        }
    };
    answered(answer)
}

/// mmap(2), which nobody takes note of.
///
/// # Safety
/// **Caller**.
pub unsafe fn raw_map(
    at: *mut c_void,
    bytes: size_t,
    [protection, how, file]: [c_int; 3],
    offset: off_t,
) -> *mut c_void {
    let arguments = [
        at as usize,
        bytes,
        protection as usize,
        how as usize,
        file as usize,
        offset as usize,
    ];
    // SAFETY: **Caller**.
    answered(unsafe { raw(libc::SYS_mmap, arguments) }) as *mut c_void
}

/// `mmap(2)`.
///
/// # Safety
/// **Caller**.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mmap(
    at: *mut c_void,
    bytes: size_t,
    protection: c_int,
    how: c_int,
    file: c_int,
    offset: off_t,
) -> *mut c_void {
    // SAFETY: **Caller**.
    let start = unsafe { raw_map(at, bytes, [protection, how, file], offset) };
    if start != libc::MAP_FAILED && how & libc::MAP_ANONYMOUS == 0 && seen(file) == Whose::Ring {
        table::note_mapping(file, offset, start.cast(), bytes);
    }
    start
}

/// The same under the name that programs with large files have for it.
///
/// # Safety
/// **Caller**.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mmap64(
    at: *mut c_void,
    bytes: size_t,
    protection: c_int,
    how: c_int,
    file: c_int,
    offset: off_t,
) -> *mut c_void {
    // SAFETY: **Caller**.
    unsafe { mmap(at, bytes, protection, how, file, offset) }
}
