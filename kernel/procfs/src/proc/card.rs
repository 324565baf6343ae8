//! /proc/net/card: what the network card's driver counted, with a reason for each frame that it
//! dropped; a line for each pair of queues and count. The file is not Linux's.

use core::fmt::{Result, Write};

use vfs::pseudo::{Entry, Text};

/// The table's lines.
pub const ENTRIES: &[Entry] = &[Entry::new("net/card", card)];

fn card(text: &mut Text) -> Result {
    for (ring, counters) in net::port_counters().iter().enumerate() {
        let mut counts = counters.named().into_iter();
        counts.try_for_each(|(name, count)| writeln!(text, "{ring} {name} {count}"))?;
    }
    Ok(())
}
