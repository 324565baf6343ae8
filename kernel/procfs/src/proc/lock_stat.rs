//! /proc/lock_stat: how often spin locks were waited for, by what they protect.
//!
//! A line for each class of which one was: acquisitions that had to wait, turns of the loops in
//! which they did, and the type of what is protected. The first line sums all up. Linux's
//! file of this name has other columns.

use alloc::collections::BTreeMap;
use core::fmt::{Result, Write};

use vfs::pseudo::Text;

/// Writes the file.
pub fn generate(text: &mut Text) -> Result {
    let mut classes: BTreeMap<&str, (u64, u64)> = BTreeMap::new();
    for one in mach::sync::contention() {
        let (waits, turns) = classes.entry(one.class).or_default();
        *waits += one.waits;
        *turns += one.turns;
    }
    let waits: u64 = classes.values().map(|(waits, _)| waits).sum();
    let turns: u64 = classes.values().map(|(_, turns)| turns).sum();
    writeln!(text, "{waits} {turns} total")?;
    for (class, (waits, turns)) in classes {
        writeln!(text, "{waits} {turns} {class}")?;
    }
    Ok(())
}
