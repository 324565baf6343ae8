//! Counts how often CPUs wait for the kernel's spin locks: how many acquisitions had to wait in a
//! thousand requests, on machines with more and more CPUs.
//!
//!     cargo run --release -p bench-contention -- [--classes] [--threads]
//!
//! `programs/loads.c` runs in each machine: it loads all CPUs with one kind of request after the
//! other, or stands around a client of a server, and reads `/proc/lock_stat` before and after. The
//! machines are emulated, and their CPUs take turns of some hundred instructions on one thread of the
//! host. So they meet as CPUs do that all run at all times, but for this: an interrupt arrives at
//! once, where hardware takes a microsecond, so whom it wakes comes earlier. With `--threads` each
//! CPU is a thread of the host. Where that has fewer CPUs, it stops them at any moment, those that
//! have a lock too: then the figures tell as much of the host as of the kernel.
//! `--classes` says which locks were waited for most. The table goes to standard output.

#![forbid(unsafe_code)]

mod guest;
mod load;
mod table;

use std::process::ExitCode;

use clap::Parser;
use guest::Host;

/// CPUs of the machines.
const CPUS: [u8; 4] = [2, 4, 8, 16];

/// Counts how often CPUs wait for the kernel's spin locks, on machines with 2 to 16 CPUs.
#[derive(Debug, Parser)]
struct Flags {
    /// Say as well which locks were waited for most, on standard error
    #[arg(long)]
    classes: bool,
    /// Run each CPU as a thread of the host instead of in turns
    #[arg(long)]
    threads: bool,
}

fn main() -> ExitCode {
    let flags = Flags::parse();
    let host = match flags.threads {
        true => Host::Threads,
        false => Host::Turns,
    };
    match count(host, flags.classes) {
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

fn count(host: Host, shows_classes: bool) -> Result<String, String> {
    let mut table = table::Table::default();
    for cpus in CPUS {
        let files = load::files(cpus)?;
        for script in load::SCRIPTS {
            let said = guest::run(host, cpus, &files, script)?;
            if shows_classes {
                eprintln!("{cpus} CPUs\n{said}");
            }
            table.read(&said)?;
        }
    }
    Ok(table.to_markdown(&CPUS))
}
