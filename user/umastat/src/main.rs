//! Prints what the heap of a program on `libumem.so` holds: `umastat PID`.
//!
//! The library keeps a table of its depots and threads (`user/umem/src/stats.rs`); this
//! program finds it by its symbol and reads it, and the bounds of each thread's magazines,
//! from `/proc/PID/mem`. The program under the glass is not stopped and does nothing for it.

#![forbid(unsafe_code)]

mod memory;
mod report;
mod table;

use std::process::ExitCode;

use memory::Memory;
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
    let argument = std::env::args().nth(1);
    let pid: u32 = argument
        .and_then(|text| text.parse().ok())
        .ok_or("usage: umastat PID")?;
    let memory = Memory::of(pid)?;
    let statistics = Statistics::read(&memory)?;
    Ok(report::format(&statistics))
}
