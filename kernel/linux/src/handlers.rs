//! What runs for each call number: the family's handler, between two looks at the clock that
//! measure it (`sched::preempt_off`).
//!
//! A call that does nothing but look at a number or two is so short that the two looks at the
//! clock would double it, and can never be long: these few ([`CONSTANT`]) go without.

use linux_raw_sys::general::*;
use sched::preempt_off::{self, Cause};

use crate::table;
use linux_abi::call::{Call, Handler, LIMIT, Outcome};
use linux_abi::missing;

/// Dense; calls that we lack share one handler, and so does the last row, which stands for all
/// numbers from there on. A constant.
static HANDLERS: [Handler; LIMIT] = handlers();

/// The handler for a call number that a program gave.
///
/// The number is clamped by a conditional move, which the processor does not guess, so
/// that no speculation reads beyond the table (Spectre variant 1).
///
/// tidy: the clamped number is below the table's length.
#[inline]
pub fn handler(number: u64) -> Handler {
    HANDLERS[(number as usize).min(LIMIT - 1)]
}

/// tidy: it runs at compile time only.
const fn handlers() -> [Handler; LIMIT] {
    let mut handlers = [missing::call as Handler; LIMIT];
    let mut number = 0;
    while number < LIMIT {
        if table::has(number) {
            handlers[number] = measured_if_long(number);
        }
        number += 1;
    }
    assert!(!table::has(LIMIT - 1), "the last row is nobody's");
    handlers
}

/// Calls whose work neither their arguments nor the state of the machine makes longer.
const CONSTANT: &[u32] = &[
    __NR_clock_gettime,
    __NR_getcpu,
    __NR_getegid,
    __NR_geteuid,
    __NR_getgid,
    __NR_getpid,
    __NR_getppid,
    __NR_gettid,
    __NR_gettimeofday,
    __NR_getuid,
    __NR_time,
    __NR_umask,
];

/// A table of this many rows in each of three directions has a row for each number.
const SIDE: usize = 8;
const _: () = assert!(
    SIDE * SIDE * SIDE == LIMIT,
    "there is a row for each number"
);

macro_rules! side {
    ($row:ident $($outer:literal)*) => {
        [
            $row!($($outer)* 0), $row!($($outer)* 1), $row!($($outer)* 2), $row!($($outer)* 3),
            $row!($($outer)* 4), $row!($($outer)* 5), $row!($($outer)* 6), $row!($($outer)* 7),
        ]
    };
}
macro_rules! plane {
    ($a:literal) => {
        side!(line $a)
    };
}
macro_rules! line {
    ($a:literal $b:literal) => {
        side!(cell $a $b)
    };
}
macro_rules! cell {
    ($a:literal $b:literal $c:literal) => {
        measured::<{ ($a * SIDE + $b) * SIDE + $c }> as Handler
    };
}

const MEASURED: [[[Handler; SIDE]; SIDE]; SIDE] = side!(plane);

/// The handler of the call `number` that measures it, if it can be long.
///
/// tidy: it runs at compile time only.
const fn measured_if_long(number: usize) -> Handler {
    let mut row = 0;
    while row < CONSTANT.len() {
        if CONSTANT[row] as usize == number {
            return table::handler(number);
        }
        row += 1;
    }
    MEASURED[number / SIDE / SIDE][number / SIDE % SIDE][number % SIDE]
}

fn measured<const NUMBER: usize>(call: Call<'_>) -> Outcome {
    preempt_off::begin(Cause::call(NUMBER as u64));
    let handler = const { table::handler(NUMBER) };
    let outcome = handler(call);
    preempt_off::end();
    outcome
}
