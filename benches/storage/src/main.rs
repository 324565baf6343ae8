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

/// Counts the guest's instructions for a transfer to a disk, beside Debian's Linux.
#[derive(Debug, Parser)]
struct Flags {
    /// Rounds of the bandwidth
    #[arg(long, default_value_t = 3)]
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
    /// Words of the rows' names [default: all rows]
    #[arg(value_name = "WORD")]
    words: Vec<String>,
}

impl Flags {
    fn wants(&self, name: &str) -> bool {
        self.words.iter().all(|word| name.contains(word.as_str()))
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
    let mut counts = [vec![], vec![]];
    for &system in flags.systems() {
        eprintln!("{}", system.name());
        let costs = counted::count(system, flags.quick, &|name| flags.wants(name))?;
        if flags.functions {
            print!("{}", counted::functions(system, &costs));
        }
        counts[usize::from(system == System::Sietch)] = costs;
    }
    let counts = page::counts(&counts[0], &counts[1]);
    println!("{counts}");
    if flags.functions || !flags.wants("sequential MB/s") {
        return Ok(());
    }
    let rounds = if flags.quick { 1 } else { flags.rounds };
    let mut table = Table::default();
    for round in 1..=rounds {
        for &system in flags.systems() {
            eprintln!("round {round} of {rounds}: {}", system.name());
            bandwidth::measure(system, &mut table)?;
        }
    }
    let bandwidth = table.to_markdown("one vCPU");
    println!("{bandwidth}");
    match flags.quick || flags.sietch || !flags.words.is_empty() {
        true => Ok(()),
        false => page::write(&counts, &bandwidth, rounds),
    }
}
