//! /proc/net/stack_counters: what stacks in programs have counted (`inet_sockets`), a line for each count: the program, its
//! link, its address there, a group, a name and a value. The file is not Linux's.

use core::fmt::{Result, Write};

use vfs::pseudo::{Entry, Text};

/// The table's lines.
pub const ENTRIES: &[Entry] = &[Entry::new("net/stack_counters", counters)];

fn counters(text: &mut Text) -> Result {
    for of in inet_sockets::stack_counters(&net::current_stack()) {
        let (process, link, address) = (of.process, of.link, of.address);
        for one in of.counters {
            let (group, name, value) = (one.group, one.name, one.value);
            writeln!(text, "{process} {link} {address} {group} {name} {value}")?;
        }
    }
    Ok(())
}
