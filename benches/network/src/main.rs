//! Measures the network under real servers, Sietch beside Debian's Linux as a guest.
//!
//!     make bench        (or: cargo run --release -p bench-network -- [--quick] [ROW]...)
//!
//! Both systems boot as `benches/guests` boots them; a round of each row measures one right
//! after the other, so that a busy host disturbs both. Most rows take one virtual CPU. Rows
//! about growing are measured with one and with two, and show the ratio of both as well.
//! Client, tap interface and QEMU's devices share this host's CPUs with the machine, so a
//! machine with two cannot be given two whole ones. Therefore QEMU's CPU time stands beside
//! such a rate, and it is measured again on machines that are slow by themselves. What is
//! measured by the clock of the guest's instructions comes out alike each time: once is enough.
//!
//! Tables go to standard output. A run of all rows in full length writes
//! `docs/bench-network.md`; one with `--quick` or with rows' names only shows that they work.

#![forbid(unsafe_code)]

mod client;
mod connections;
mod counted;
mod flood;
mod idle;
mod iperf;
mod memcached;
mod nginx;
mod own;
mod page;
mod ping;
mod redis;
mod round_trip;
mod row;
mod run;
mod steadiness;

use std::process::ExitCode;

use bench_pair::{Kernel, System};
use clap::Parser;

use page::Tables;
use row::{ROWS, Row};
use run::Run;

/// Measures the network under real servers, beside Debian's Linux as a guest.
#[derive(Debug, Parser)]
struct Flags {
    /// Rounds of each row
    #[arg(long, default_value_t = 3)]
    rounds: u32,
    /// Measure a sixth as long and write no page
    #[arg(long)]
    quick: bool,
    /// Measure programs that own their network instead, for docs/bench-bypass-network.md; or some PARTS of that
    #[arg(long, value_name = "PART", num_args = 0.., value_parser = own::PARTS, conflicts_with = "rows")]
    own: Option<Vec<String>>,
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
    if let Some(parts) = &flags.own {
        bench_pair::set_up(&[Kernel::Cloud])?;
        let amount = own::Amount {
            rounds: flags.rounds,
            quick: flags.quick,
        };
        return own::measure(parts, amount);
    }
    bench_pair::set_up(&[Kernel::Cloud, Kernel::Generic])?;
    let is_wanted =
        |row: &&Row| flags.rows.is_empty() || flags.rows.iter().any(|name| name == row.name);
    let mut tables = Tables::default();
    for round in 1..=flags.rounds {
        let is_due = |row: &&Row| is_wanted(row) && row.is_due(round);
        for row in ROWS.iter().filter(is_due) {
            for &size in row.machines {
                for system in System::ALL {
                    eprintln!(
                        "round {round} of {}: {}, {} with {}",
                        flags.rounds,
                        row.name,
                        system.name(),
                        page::heading(size)
                    );
                    let run = Run {
                        system,
                        size,
                        quick: flags.quick,
                    };
                    // A row that fails lacks this round.
                    if let Err(why) = (row.measure)(&run, tables.of(size)) {
                        eprintln!("  failed: {why}");
                    }
                }
            }
        }
    }
    let tables = tables.to_markdown();
    println!("{tables}");
    match flags.quick || !flags.rows.is_empty() {
        true => Ok(()),
        false => page::write(&tables, flags.rounds),
    }
}
