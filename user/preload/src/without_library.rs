//! A program that does not load the library is about to be started: what it inherits is handed over to the kernel's stack.
//!
//! A call that fails leaves the program with the kernel's sockets, which is fine.
//!
//! A child of a fork has all sockets of its parent's that nobody has closed, most of them by accident; each connection that it takes
//! would leave its parent. So it takes what it has copied, or has as standard input or output: what it was started for. Listeners
//! stay its parent's.

use std::ffi::{CStr, c_int};

use crate::exit;
use crate::hand_over::hand_over;
use crate::inherited::is_kept;
use crate::loading::loads_library;
use crate::numbers::{self, Whose};
use crate::state::{self, Held};

/// Looks at the program that this process becomes. Connections that it does not get are handed over, too: the kernel tells their
/// peers that they are closed, and our stack is gone by then.
pub fn prepare_to_become(program: &CStr) {
    if !exit::is_own_process() || !numbers::has_any() || loads_library(program) {
        return;
    }
    prepare(program, is_kept);
    let numbers = (0..numbers::end()).map(u32::cast_signed);
    for number in numbers.filter(|number| is_connection(*number)) {
        // It is said why not.
        hand_over(number).ok();
    }
}

fn is_connection(number: c_int) -> bool {
    numbers::seen(number) == Whose::Socket
        && Held::of(number).is_ok_and(|mut held| {
            let host = held.host();
            let open = host.socket(number.cast_unsigned());
            open.is_ok_and(|open| matches!(host.ends(&open), Ok(Some(_))))
        })
}

/// Looks at the program, which gets the numbers of which `is_left` says so.
pub fn prepare(program: &CStr, is_left: impl Fn(&[u32]) -> bool) {
    if !exit::is_own_process() || !numbers::has_any() || loads_library(program) {
        return;
    }
    let mut is_lost = false;
    for number in (0..numbers::end()).filter(|number| is_left(&[*number])) {
        let number = number.cast_signed();
        is_lost |= match numbers::seen(number) {
            Whose::Socket => hand_over(number).is_err(),
            Whose::Inherited if is_meant(number) => hand_over(number).is_err(),
            Whose::Inherited | Whose::Parent => true,
            _ => false,
        };
    }
    if is_lost {
        let program = program.to_string_lossy();
        eprintln!(
            "libsietch: {program} does not load the library: it cannot use all sockets that it inherits."
        );
    }
}

/// Whether a child is to have it, of what it has inherited and not used.
fn is_meant(number: c_int) -> bool {
    let is_copied = state::lock().copies_of_loan(number) > 1;
    is_copied || (libc::STDIN_FILENO..=libc::STDERR_FILENO).contains(&number)
}
