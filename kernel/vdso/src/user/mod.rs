//! The code of the vDSO, as programs call it. Names, arguments and results are Linux's
//! (`man 7 vdso`).
//!
//! Invariants:
//! - **Data**: the page before the image holds the words of [`field`]; the kernel writes
//!   them by whole words.
//! - **Caller**: pointers are the program's own; a bad one faults in the program, as a bad
//!   pointer does anywhere in it.
#![no_std]

mod clock;
pub mod field;

use core::arch::asm;

/// Seconds and a fraction, as `struct timespec` and `struct timeval` have it.
#[repr(C)]
pub struct Time {
    seconds: u64,
    fraction: u64,
}

const NANOS: u64 = 1_000_000_000;

const GETTIMEOFDAY: u64 = 96;
const TIME: u64 = 201;
const CLOCK_GETTIME: u64 = 228;
const CLOCK_GETRES: u64 = 229;
const GETCPU: u64 = 309;

const REALTIME: u32 = 0;
const MONOTONIC: u32 = 1;
const MONOTONIC_RAW: u32 = 4;
const REALTIME_COARSE: u32 = 5;
const MONOTONIC_COARSE: u32 = 6;
const BOOTTIME: u32 = 7;

fn system_call(number: u64, a: u64, b: u64) -> i64 {
    let result;
    // SAFETY: the kernel checks the arguments (**Caller**).
    unsafe {
        asm!("syscall", inlateout("rax") number => result, in("rdi") a, in("rsi") b, in("rdx") 0,
             out("rcx") _, out("r11") _, options(nostack));
    }
    result
}

/// `clock_gettime(2)`.
///
/// # Safety
/// `to` can be written (**Caller**).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __vdso_clock_gettime(id: u32, to: *mut Time) -> i32 {
    let nanos = match id {
        MONOTONIC | MONOTONIC_COARSE | BOOTTIME => clock::monotonic(),
        MONOTONIC_RAW => clock::raw(),
        REALTIME | REALTIME_COARSE => clock::wall(),
        _ => None,
    };
    match nanos {
        Some(nanos) => {
            // SAFETY: **Caller**.
            unsafe { to.write(Time { seconds: nanos / NANOS, fraction: nanos % NANOS }) };
            0
        }
        None => system_call(CLOCK_GETTIME, id.into(), to as u64) as i32,
    }
}

/// `clock_getres(2)`: all clocks here count nanoseconds.
///
/// # Safety
/// `to` is null or can be written (**Caller**).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __vdso_clock_getres(id: u32, to: *mut Time) -> i32 {
    if !matches!(id, REALTIME | MONOTONIC | MONOTONIC_RAW | BOOTTIME) {
        return system_call(CLOCK_GETRES, id.into(), to as u64) as i32;
    }
    if !to.is_null() {
        // SAFETY: **Caller**.
        unsafe { to.write(Time { seconds: 0, fraction: 1 }) };
    }
    0
}

/// `gettimeofday(2)`: the time zone is always Greenwich.
///
/// # Safety
/// Each pointer is null or can be written (**Caller**).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __vdso_gettimeofday(to: *mut Time, zone: *mut u64) -> i32 {
    let Some(nanos) = clock::wall() else {
        return system_call(GETTIMEOFDAY, to as u64, zone as u64) as i32;
    };
    // SAFETY: **Caller**.
    unsafe {
        if !to.is_null() {
            to.write(Time { seconds: nanos / NANOS, fraction: nanos % NANOS / 1000 });
        }
        if !zone.is_null() {
            zone.write(0);
        }
    }
    0
}

/// `time(2)`.
///
/// # Safety
/// `to` is null or can be written (**Caller**).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __vdso_time(to: *mut i64) -> i64 {
    let seconds = match clock::wall() {
        Some(nanos) => (nanos / NANOS) as i64,
        None => system_call(TIME, 0, 0),
    };
    if !to.is_null() {
        // SAFETY: **Caller**.
        unsafe { to.write(seconds) };
    }
    seconds
}

/// `getcpu(2)`.
///
/// # Safety
/// Each pointer is null or can be written (**Caller**).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __vdso_getcpu(cpu: *mut u32, node: *mut u32, _unused: *mut u8) -> i32 {
    let Some((number, own_node)) = clock::cpu() else {
        return system_call(GETCPU, cpu as u64, node as u64) as i32;
    };
    // SAFETY: **Caller**.
    unsafe {
        if !cpu.is_null() {
            cpu.write(number);
        }
        if !node.is_null() {
            node.write(own_node);
        }
    }
    0
}

core::arch::global_asm!(
    ".macro alias name",
    ".globl \\name",
    ".type \\name, @function",
    ".set \\name, __vdso_\\name",
    ".endm",
    "alias clock_gettime",
    "alias clock_getres",
    "alias gettimeofday",
    "alias time",
    "alias getcpu",
);
