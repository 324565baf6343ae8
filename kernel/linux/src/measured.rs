//! The handlers with which calls are measured (`sched::stretch`).
//!
//! A call that does nothing but look at a number or two is so short that the two looks at the
//! clock would double it, and can never be long: these few ([`CONSTANT`]) go without.

use linux_raw_sys::general::*;
use sched::stretch::{self, Cause};

use crate::table;
use linux_abi::call::{Call, Handler, LIMIT, Outcome};

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
pub const fn handler(number: usize) -> Handler {
    let mut row = 0;
    while row < CONSTANT.len() {
        if CONSTANT[row] as usize == number {
            return table::plain_handler(number);
        }
        row += 1;
    }
    MEASURED[number / SIDE / SIDE][number / SIDE % SIDE][number % SIDE]
}

fn measured<const NUMBER: usize>(call: Call<'_>) -> Outcome {
    stretch::begin(Cause::call(NUMBER as u64));
    let handler = const { table::plain_handler(NUMBER) };
    let outcome = handler(call);
    stretch::end();
    outcome
}
