//! /proc/net/reasons: why packets were dropped and why resets were sent, all reasons with
//! their counts, a line each. The names are those of `tcpdrop` and of the code that decides
//! (`core/inet/src/counters.rs`). The file is not Linux's.

use core::fmt::{Result, Write};

use vfs::pseudo::{Entry, Text};

/// The table's lines.
pub const ENTRIES: &[Entry] = &[Entry::new("net/reasons", reasons)];

fn reasons(text: &mut Text) -> Result {
    let stats = net::current_stack().stats();
    let mut drops = stats.drops.iter();
    drops.try_for_each(|(reason, count)| writeln!(text, "drop {reason} {count}"))?;
    let mut resets = stats.resets.iter();
    resets.try_for_each(|(reason, count)| writeln!(text, "reset {reason} {count}"))
}
