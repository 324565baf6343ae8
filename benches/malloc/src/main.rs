//! Compares `libumem.so` with glibc's malloc and the allocators that Debian has.
//!
//!     make bench-malloc        (or: cargo run --release -p bench-malloc -- [ROUNDS])
//!
//! One C program is compiled once and runs with each allocator by `LD_PRELOAD`. Rounds
//! alternate between the allocators, so that a busy host disturbs all. Each figure is the
//! median of the rounds with their span. `callgrind` counts instructions, which no
//! neighbour disturbs.
//!
//! The tables go to standard output and to `docs/bench-malloc.md`.

#![forbid(unsafe_code)]

mod allocator;
mod page;
mod work;

use std::process::ExitCode;

use clap::Parser;

use allocator::Allocator;
use page::Page;
use work::WORKS;

/// Compares `libumem.so` with the allocators that Debian has.
#[derive(Debug, Parser)]
struct Flags {
    /// Rounds of each measurement
    #[arg(default_value_t = 7)]
    rounds: usize,
}

fn main() -> ExitCode {
    match compare(&Flags::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(sentence) => {
            eprintln!("bench-malloc: {sentence}");
            ExitCode::FAILURE
        }
    }
}

fn compare(flags: &Flags) -> Result<(), String> {
    let rounds = flags.rounds;
    work::compile()?;
    let allocators = Allocator::installed()?;
    let mut page = Page::new(&allocators, rounds);
    for round in 1..=rounds {
        eprintln!("round {round} of {rounds}");
        for work in &WORKS {
            for (index, allocator) in allocators.iter().enumerate() {
                page.add(work, index, work::run(work, allocator)?);
            }
        }
    }
    for (index, allocator) in allocators.iter().enumerate() {
        for work in WORKS.iter().filter(|work| work.is_counted) {
            page.count(work, index, work::instructions(work, allocator)?);
        }
    }
    let text = page.to_markdown();
    println!("{text}");
    let path = "docs/bench-malloc.md";
    std::fs::write(path, text).map_err(|error| format!("{path}: {error}"))
}
