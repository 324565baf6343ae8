//! Counts what the profiler costs the machine that it watches.
//!
//!     cargo run --release -p bench-profile        (`make bench` does it too)
//!
//! Redis and redis-benchmark run together in one machine, without a profiler, sampled, and with
//! their waits recorded. QEMU's `-icount` makes the machine's clock count
//! instructions, a thousand million to its second, so that requests per second say how many
//! instructions a request takes, exactly and whatever else the host does. The timer that raises
//! the samples runs by the same clock.
//!
//! The table goes to standard output and to `docs/bench-profile.md`.

#![forbid(unsafe_code)]

mod guest;
mod page;

use std::process::ExitCode;

use clap::Parser;
use guest::Profiler;

/// Counts what the profiler costs the machine that it watches.
#[derive(Debug, Parser)]
struct Flags {}

fn main() -> ExitCode {
    let Flags {} = Flags::parse();
    match count() {
        Ok(()) => ExitCode::SUCCESS,
        Err(sentence) => {
            eprintln!("bench-profile: {sentence}");
            ExitCode::FAILURE
        }
    }
}

fn count() -> Result<(), String> {
    let mut figures = Vec::new();
    for profiler in Profiler::ALL {
        eprintln!("{}", profiler.name());
        figures.push((profiler, profiler.run()?));
    }
    let table = page::table(&figures);
    println!("{table}");
    page::write(&table)
}
