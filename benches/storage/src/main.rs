//! Counts the guest's instructions for a transfer to a disk, and measures bandwidth, beside Debian's Linux.
//!
//!     cargo run --release -p bench-storage -- [--quick] [--functions] [--sietch] [WORD]...
//!
//! The tables go to standard output; a run of all rows in full length writes `docs/bench-storage.md`.
//! `WORD`s choose rows by words of their names; `--functions` lists the kernel's functions
//! behind each row; `--sietch` leaves Linux out.

#![forbid(unsafe_code)]

mod bandwidth;
mod counted;
mod disk;
mod load;
mod page;
mod shell;

use std::process::ExitCode;

use bench_pair::{Kernel, System, Table};
use clap::Parser;
use disk::Bus;

/// Counts the guest's instructions for a transfer to a disk, beside Debian's Linux.
#[derive(Debug, Parser)]
struct Flags {
    /// Rounds of the bandwidth
    #[arg(long, default_value_t = 2)]
    rounds: u32,
    /// Measure a quarter as long and write no page
    #[arg(long)]
    quick: bool,
    /// List the kernel's functions that cost most, and write no page
    #[arg(long)]
    functions: bool,
    /// Measure Sietch only, and write no page
    #[arg(long)]
    sietch: bool,
    /// Measure disks behind this bus only, and write no page
    #[arg(long, value_parser = ["virtio", "nvme"])]
    bus: Option<String>,
    /// Words of the rows' names [default: all rows]
    #[arg(value_name = "WORD")]
    words: Vec<String>,
}

impl Flags {
    fn wants(&self, name: &str) -> bool {
        self.words.iter().all(|word| name.contains(word.as_str()))
    }

    fn buses(&self) -> impl Iterator<Item = Bus> {
        let is_wanted = |bus: &Bus| match self.bus.as_deref() {
            Some("virtio") => *bus == Bus::Virtio,
            Some(_) => *bus == Bus::Nvme,
            None => true,
        };
        Bus::ALL.into_iter().filter(is_wanted)
    }

    /// In the order of a round.
    fn systems(&self) -> &'static [System] {
        match self.sietch {
            true => &[System::Sietch],
            false => &System::BOTH,
        }
    }
}

fn main() -> ExitCode {
    let flags = Flags::parse();
    match measure(&flags) {
        Ok(()) => ExitCode::SUCCESS,
        Err(sentence) => {
            eprintln!("bench-storage: {sentence}");
            ExitCode::FAILURE
        }
    }
}

fn measure(flags: &Flags) -> Result<(), String> {
    bench_pair::set_up(&[Kernel::Disk])?;
    let mut tables = String::new();
    for bus in flags.buses() {
        let mut counts = [vec![], vec![]];
        for &system in flags.systems() {
            eprintln!("{}, {}", system.name(), bus.name());
            let counted = counted::count(system, bus, flags.quick, &|name| flags.wants(name));
            // What fails is missing from the table.
            let costs = counted.unwrap_or_else(|why| {
                eprintln!("  fails: {why}");
                Vec::new()
            });
            if flags.functions {
                print!("{}", counted::functions(system, &costs));
            }
            counts[usize::from(system == System::Sietch)] = costs;
        }
        let table = page::counts(bus, &counts[0], &counts[1]);
        println!("{table}");
        tables += &table;
    }
    if flags.functions || !flags.wants("sequential write, sequential read, MB/s") {
        return Ok(());
    }
    let rounds = if flags.quick { 1 } else { flags.rounds };
    let mut table = Table::default();
    for round in 1..=rounds {
        for &system in flags.systems() {
            eprintln!("round {round} of {rounds}: {}", system.name());
            for bus in flags.buses() {
                // A row that fails lacks this round.
                if let Err(why) = bandwidth::measure(system, bus, &mut table) {
                    eprintln!("  failed: {why}");
                }
            }
        }
    }
    let bandwidth = table.to_markdown("one vCPU");
    println!("{bandwidth}");
    match flags.quick || flags.sietch || flags.bus.is_some() || !flags.words.is_empty() {
        true => Ok(()),
        false => page::write(&tables, &bandwidth, rounds),
    }
}
