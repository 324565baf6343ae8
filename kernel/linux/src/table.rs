//! The call table, merged at compile time from the families' own. A number that two families
//! answer does not compile.

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
    linux_uring::FAMILIES,
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

/// What answers the call; `handlers` measures it.
///
/// tidy: it runs at compile time only.
pub const fn handler(number: usize) -> Handler {
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

/// The entry for a call number that a program gave.
pub fn lookup(number: u64) -> Option<&'static Entry> {
    TABLE.get(usize::try_from(number).ok()?)?.as_ref()
}
