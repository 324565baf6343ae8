//! Measures the network under real servers, Sietch beside Debian's Linux as a guest.
//!
//!     make bench        (or: cargo run --release -p bench-network -- [--quick] [ROW]...)
//!
//! Both systems boot as `benches/guests` boots them; a round of each row measures one right
//! after the other, so that a busy host disturbs both. Most rows take one virtual CPU. Rows
//! about scaling are measured with one and with two, and show the ratio of both as well. Where
//! a rate alone says little, QEMU's CPU time stands beside it: the client and the machine
//! share this host's CPUs, so a machine with two cannot be given two whole ones.
//!
//! Tables go to standard output. A run of all rows in full length writes
//! `docs/bench-network.md`; one with `--quick` or with rows' names only shows that they work.

#![forbid(unsafe_code)]

mod client;
mod connections;
mod flood;
mod idle;
mod iperf;
mod memcached;
mod nginx;
mod page;
mod ping;
mod redis;
mod round_trip;
mod row;
mod steadiness;

use std::process::ExitCode;

use bench_pair::{Kernel, System, Table};
use clap::Parser;

use row::{ROWS, Row, Run};

/// Measures the network under real servers, beside Debian's Linux as a guest.
#[derive(Debug, Parser)]
struct Flags {
    /// Rounds of each row
    #[arg(long, default_value_t = 3)]
    rounds: u32,
    /// Measure a sixth as long and write no page
    #[arg(long)]
    quick: bool,
    /// The rows to measure [default: all]
    #[arg(value_name = "ROW", value_parser = ROWS.map(|row| row.name))]
    rows: Vec<String>,
}

fn main() -> ExitCode {
    let flags = Flags::parse();
    match compare(&flags) {
        Ok(()) => ExitCode::SUCCESS,
        Err(sentence) => {
            eprintln!("bench-network: {sentence}");
            ExitCode::FAILURE
        }
    }
}

fn compare(flags: &Flags) -> Result<(), String> {
    bench_pair::set_up(&[Kernel::Cloud, Kernel::Generic])?;
    let is_wanted =
        |row: &&Row| flags.rows.is_empty() || flags.rows.iter().any(|name| name == row.name);
    let (mut one_cpu, mut two_cpus) = (Table::default(), Table::default());
    for round in 1..=flags.rounds {
        for row in ROWS.iter().filter(is_wanted) {
            for &cpus in row.cpus {
                let table = if cpus == 1 {
                    &mut one_cpu
                } else {
                    &mut two_cpus
                };
                for system in System::BOTH {
                    eprintln!(
                        "round {round} of {}: {}, {} with {cpus} vCPU",
                        flags.rounds,
                        row.name,
                        system.name()
                    );
                    let run = Run {
                        system,
                        cpus,
                        quick: flags.quick,
                    };
                    // A row that fails lacks this round.
                    if let Err(why) = (row.measure)(&run, table) {
                        eprintln!("  failed: {why}");
                    }
                }
            }
        }
    }
    let tables = page::tables(&one_cpu, &two_cpus);
    println!("{tables}");
    match flags.quick || !flags.rows.is_empty() {
        true => Ok(()),
        false => page::write(&tables, flags.rounds),
    }
}
