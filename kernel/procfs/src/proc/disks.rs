//! Disks in /proc: diskstats and partitions (Linux's Documentation/admin-guide/iostats).

use core::fmt::{Result, Write};

use block::Tally;
use kernel_block::{Disk, MAJOR, MINORS, disks};
use vfs::pseudo::{Entry, Text};

/// The files.
pub const ENTRIES: &[Entry] = &[
    Entry::new("diskstats", diskstats),
    Entry::new("partitions", partitions),
];

const NS_PER_MS: u64 = 1_000_000;

/// A line for each disk; what partitions did is their disk's.
fn diskstats(text: &mut Text) -> Result {
    for disk in disks() {
        let minor = disk.number() as u32 * MINORS;
        write!(text, "{MAJOR:4} {minor:7} {}", disk.name())?;
        counters(disk, text)?;
        writeln!(text)?;
    }
    Ok(())
}

/// The columns behind a disk's name. Requests of programs are never merged.
pub fn counters(disk: &Disk, text: &mut Text) -> Result {
    let counters = disk.counters();
    let mut tally = |tally: Tally| {
        let ms = tally.waited_ns / NS_PER_MS;
        write!(text, " {} 0 {} {ms}", tally.requests, tally.sectors)
    };
    tally(counters.reads)?;
    tally(counters.writes)?;
    let busy = counters.busy_ns / NS_PER_MS;
    let weighted = counters.weighted_ns / NS_PER_MS;
    write!(text, " {} {busy} {weighted}", counters.under_way)?;
    let discards = counters.discards;
    let ms = discards.waited_ns / NS_PER_MS;
    write!(text, " {} 0 {} {ms}", discards.requests, discards.sectors)?;
    let flushes = counters.flushes;
    let ms = flushes.waited_ns / NS_PER_MS;
    write!(text, " {} {ms}", flushes.requests)
}

fn partitions(text: &mut Text) -> Result {
    writeln!(text, "major minor  #blocks  name\n")?;
    let mut line = |minor: u32, sectors: u64, name: &str| {
        writeln!(text, "{MAJOR:4}  {minor:7} {:10} {name}", sectors / 2)
    };
    for disk in disks() {
        let minor = disk.number() as u32 * MINORS;
        line(minor, disk.limits().sectors, disk.name())?;
        for part in disk.partitions() {
            line(
                minor + u32::from(part.number),
                part.sectors.count,
                part.name,
            )?;
        }
    }
    Ok(())
}
