//! /proc/lock_stat: how often spin locks were waited for, by what they protect.
//!
//! A line for each class of which one was: acquisitions that had to wait, turns of the loops in
//! which they did, naps between these, and the type of what is protected. The first line sums all
//! up. Linux's file of this name has other columns.

use alloc::collections::BTreeMap;
use core::fmt::{Result, Write};

use mach::sync::Contention;
use vfs::pseudo::Text;

/// Writes the file.
pub fn generate(text: &mut Text) -> Result {
    let mut classes: BTreeMap<&str, Contention> = BTreeMap::new();
    let mut total = none("total");
    for one in mach::sync::contention() {
        add(classes.entry(one.class).or_insert(none(one.class)), &one);
        add(&mut total, &one);
    }
    for line in core::iter::once(&total).chain(classes.values()) {
        let Contention {
            class,
            waits,
            turns,
            naps,
        } = line;
        writeln!(text, "{waits} {turns} {naps} {class}")?;
    }
    Ok(())
}

fn none(class: &'static str) -> Contention {
    Contention {
        class,
        waits: 0,
        turns: 0,
        naps: 0,
    }
}

fn add(sum: &mut Contention, one: &Contention) {
    sum.waits += one.waits;
    sum.turns += one.turns;
    sum.naps += one.naps;
}
