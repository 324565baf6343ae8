//! The call table, merged at compile time from the families' own. A number that two families
//! answer does not compile.

use crate::measured;
use linux_abi::call::{Entry, Handler, LIMIT};
use linux_abi::missing;

/// The calls, crate by crate.
const CRATES: &[&[&[Entry]]] = &[
    OWN,
    linux_net::FAMILIES,
    linux_files::FAMILIES,
    linux_ipc::FAMILIES,
    linux_memory::FAMILIES,
    linux_time::FAMILIES,
    linux_task::FAMILIES,
];

/// The families of this crate, one file each.
const OWN: &[&[Entry]] = &[
    crate::ioctl::CALLS,
    crate::random::CALLS,
    crate::reboot::CALLS,
    crate::sysinfo::CALLS,
];

/// A constant.
static TABLE: [Option<Entry>; LIMIT] = CALLS;
#[expect(
    clippy::large_const_arrays,
    reason = "only other tables are made of it"
)]
const CALLS: [Option<Entry>; LIMIT] = merge();

/// The handlers alone, dense; calls that we lack share one, and so does the last row, which stands
/// for all numbers from there on. A constant.
static HANDLERS: [Handler; LIMIT] = handlers();

/// tidy: it runs at compile time only.
const fn handlers() -> [Handler; LIMIT] {
    let mut handlers = [missing::call as Handler; LIMIT];
    let mut number = 0;
    while number < LIMIT {
        if CALLS[number].is_some() {
            handlers[number] = measured::handler(number);
        }
        number += 1;
    }
    assert!(CALLS[LIMIT - 1].is_none(), "the last row is nobody's");
    handlers
}

/// What runs the call, unmeasured.
///
/// tidy: it runs at compile time only.
pub const fn plain_handler(number: usize) -> Handler {
    match CALLS[number] {
        Some(entry) => entry.handler,
        None => missing::call,
    }
}

/// Whether we have the call.
///
/// tidy: it runs at compile time only.
pub const fn has(number: usize) -> bool {
    CALLS[number].is_some()
}

/// tidy: it runs at compile time only.
const fn merge() -> [Option<Entry>; LIMIT] {
    let mut table = [None; LIMIT];
    let mut index = 0;
    while index < CRATES.len() {
        let mut family = 0;
        while family < CRATES[index].len() {
            table = with_family(table, CRATES[index][family]);
            family += 1;
        }
        index += 1;
    }
    table
}

/// tidy: it runs at compile time only.
const fn with_family(mut table: [Option<Entry>; LIMIT], calls: &[Entry]) -> [Option<Entry>; LIMIT] {
    let mut row = 0;
    while row < calls.len() {
        let number = calls[row].number as usize;
        assert!(table[number].is_none(), "two handlers for one call");
        table[number] = Some(calls[row]);
        row += 1;
    }
    table
}

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

/// The entry for a call number that a program gave.
pub fn lookup(number: u64) -> Option<&'static Entry> {
    TABLE.get(usize::try_from(number).ok()?)?.as_ref()
}
