//! Prints what the heap of a program on `libumem.so` holds: `umastat PID`, or held when
//! `umastat --save FILE PID` wrote it down: `umastat FILE`.
//!
//! The library keeps a table of its depots and threads (`user/umem/src/stats.rs`); this
//! program finds it by its symbol and reads it, and the bounds of each thread's magazines,
//! from `/proc/PID/mem`. The program under the glass is not stopped and does nothing for it.

#![forbid(unsafe_code)]

mod memory;
mod report;
mod snapshot;
mod table;

use std::process::ExitCode;

use memory::Memory;
use snapshot::Snapshot;
use table::Statistics;

fn main() -> ExitCode {
    match run() {
        Ok(text) => {
            print!("{text}");
            ExitCode::SUCCESS
        }
        Err(sentence) => {
            eprintln!("umastat: {sentence}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<String, String> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments[..] {
        ["--save", file, pid] => take(pid)?.save(file).map(|()| String::new()),
        [what] => tables(what),
        _ => Err("usage: umastat PID | umastat --save FILE PID | umastat FILE".into()),
    }
}

/// The tables of a process, if `what` is a number, or of a file.
fn tables(what: &str) -> Result<String, String> {
    let snapshot = match what.parse::<u32>() {
        Ok(_) => take(what)?,
        Err(_) => Snapshot::load(what)?,
    };
    Ok(report::format(&Statistics::of(&snapshot)?))
}

fn take(pid: &str) -> Result<Snapshot, String> {
    let pid = pid.parse().map_err(|_| format!("{pid} is no process"))?;
    Snapshot::take(&Memory::of(pid)?)
}
