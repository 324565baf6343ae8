//! /proc/net/packet, which `ss` reads, and why packet sockets lost packets.

use core::fmt::{Result, Write};

use net::packet;
use vfs::pseudo::{Entry, Text};

/// The table's lines.
pub const ENTRIES: &[Entry] = &[
    Entry::new("net/packet", sockets),
    Entry::new("net/packet_drops", drops),
];

fn sockets(text: &mut Text) -> Result {
    writeln!(
        text,
        "sk               RefCnt Type Proto  Iface R Rmem   User   Inode"
    )?;
    for entry in packet::sockets(&net::current_stack()) {
        writeln!(
            text,
            "{:016x} 1      {:<4} {:04x}   {:<5} 1 {:<6} 0      {:<6}",
            0, entry.kind, entry.protocol, entry.interface, entry.queued, entry.number
        )?;
    }
    Ok(())
}

/// A reason and how often it applied since boot, a line each.
fn drops(text: &mut Text) -> Result {
    let (of_packets, of_unix) = (packet::drops(), unix::drops());
    for (reason, count) in of_packets.iter().chain(of_unix.iter()) {
        writeln!(text, "{reason} {count}")?;
    }
    Ok(())
}
