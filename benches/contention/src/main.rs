//! Counts how often CPUs wait for the kernel's spin locks: how many acquisitions had to wait in a
//! thousand requests, on machines with more and more CPUs.
//!
//!     cargo run --release -p bench-contention [--classes]
//!
//! `programs/loads.c` runs in each machine: it loads all CPUs with one kind of request after the
//! other, or stands around a client of a server, and reads `/proc/lock_stat` before and after. The
//! machines are emulated and the host may have fewer CPUs than they: a CPU may be stopped by the
//! host while it has a lock. So the figures tell contention, not speed, and vary from run to run.
//! `--classes` says which locks were waited for most. The table goes to standard output.

#![forbid(unsafe_code)]

mod guest;
mod load;
mod table;

use std::process::ExitCode;

/// CPUs of the machines.
const CPUS: [u8; 4] = [2, 4, 8, 16];

fn main() -> ExitCode {
    let shows_classes = std::env::args().any(|word| word == "--classes");
    match count(shows_classes) {
        Ok(text) => {
            println!("{text}");
            ExitCode::SUCCESS
        }
        Err(sentence) => {
            eprintln!("bench-contention: {sentence}");
            ExitCode::FAILURE
        }
    }
}

fn count(shows_classes: bool) -> Result<String, String> {
    let mut table = table::Table::default();
    for cpus in CPUS {
        let files = load::files(cpus)?;
        for script in load::SCRIPTS {
            let said = guest::run(cpus, &files, script)?;
            if shows_classes {
                eprintln!("{cpus} CPUs\n{said}");
            }
            table.read(&said)?;
        }
    }
    Ok(table.to_markdown(&CPUS))
}
