//! Disks in /proc: diskstats and partitions (Linux's Documentation/admin-guide/iostats), and what
//! Linux does not tell of them.

use core::fmt::{Result, Write};

use block::{Counters, Tally};
use kernel_block::disks;
use vfs::pseudo::{Entry, Text};

/// The files.
pub const ENTRIES: &[Entry] = &[
    Entry::new("disks", figures),
    Entry::new("diskstats", diskstats),
    Entry::new("partitions", partitions),
];

const NS_PER_MS: u64 = 1_000_000;

/// What failed, and what it took; times are nanoseconds. RETRIED counts requests that were sent again
/// after the device was started anew, TIMED_OUT those that were given up.
fn figures(text: &mut Text) -> Result {
    writeln!(
        text,
        "REQUESTS BUSY WAITED COMMANDS FAILED RETRIED TIMED_OUT NAME"
    )?;
    for disk in disks() {
        let counters = disk.counters();
        let requests = [
            counters.reads,
            counters.writes,
            counters.discards,
            counters.flushes,
        ];
        let requests: u64 = requests.iter().map(|tally| tally.requests).sum();
        for figure in [
            requests,
            counters.busy_ns,
            counters.weighted_ns,
            counters.commands,
            counters.failed,
            counters.retried,
            counters.timed_out,
        ] {
            write!(text, "{figure} ")?;
        }
        writeln!(text, "{}", disk.name())?;
    }
    Ok(())
}

/// A line for each disk, and for each of its partitions.
fn diskstats(text: &mut Text) -> Result {
    for disk in disks() {
        let (major, minor) = disk.device(0);
        write!(text, "{major:4} {minor:7} {}", disk.name())?;
        columns(&disk.counters(), text)?;
        writeln!(text)?;
        for part in disk.partitions() {
            let (major, minor) = disk.device(part.number);
            write!(text, "{major:4} {minor:7} {}", part.name)?;
            columns(&part.counters(), text)?;
            writeln!(text)?;
        }
    }
    Ok(())
}

/// The columns behind a name. Requests of programs are never merged.
pub fn columns(counters: &Counters, text: &mut Text) -> Result {
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
    let mut line = |(major, minor): (u32, u32), sectors: u64, name: &str| {
        writeln!(text, "{major:4}  {minor:7} {:10} {name}", sectors / 2)
    };
    for disk in disks() {
        line(disk.device(0), disk.limits().sectors, disk.name())?;
        for part in disk.partitions() {
            line(disk.device(part.number), part.sectors.count, part.name)?;
        }
    }
    Ok(())
}
