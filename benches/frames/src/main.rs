//! Times the frame allocator on this machine, beside our own free lists without caches
//! and beside the crate `buddy_system_allocator`, all behind the same spin lock.
//!
//!     cargo run --release -p bench-frames -- [ROUNDS]
//!
//! Rounds alternate between the allocators, so that a busy machine disturbs all of them.
//! Each figure is the median of the rounds with their span, in nanoseconds of processor
//! time for one allocation and its release. The table goes to standard output and to
//! `docs/bench-frames.md`.

#![forbid(unsafe_code)]

mod subject;
mod table;
mod work;

use std::process::ExitCode;

use clap::Parser;

use subject::{Cached, Crate, Plain, Subject};
use table::Table;
use work::WORKS;

/// Times the frame allocator, beside the crate `buddy_system_allocator`.
#[derive(Debug, Parser)]
struct Flags {
    /// Rounds of each measurement
    #[arg(default_value_t = 9)]
    rounds: usize,
}

fn main() -> ExitCode {
    let Flags { rounds } = Flags::parse();
    let mut table = Table::default();
    for round in 1..=rounds {
        eprintln!("round {round} of {rounds}");
        measure::<Cached>(&mut table, 0);
        measure::<Plain>(&mut table, 1);
        measure::<Crate>(&mut table, 2);
    }
    let text = table.to_markdown();
    println!("{text}");
    match table::write_page(&text, rounds) {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("bench-frames: docs/bench-frames.md cannot be written: {why}");
            ExitCode::FAILURE
        }
    }
}

fn measure<S: Subject>(table: &mut Table, column: usize) {
    for (row, work) in WORKS.iter().enumerate() {
        table.add(row, column, work.measure::<S>());
    }
}
