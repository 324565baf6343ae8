//! Counts the kernel's instructions, Sietch beside Debian's Linux, in one table.
//!
//!     cargo run --release -p bench-kernel        (`make bench` does it too)
//!
//! One static program (`programs/`) runs in three guests with the same QEMU flags: Linux
//! as it comes, Linux with `mitigations=off`, and Sietch. QEMU's `-icount` makes the
//! guest's time-stamp counter count instructions, so the figures are exact, are the same
//! on each host, and do not depend on its load. The ratio is against `mitigations=off`,
//! the better figure for Linux.
//!
//! The table goes to standard output and to `docs/bench-kernel.md`.

#![forbid(unsafe_code)]

mod build;
mod guest;
mod page;
mod table;

use std::process::ExitCode;

use clap::Parser;
use guest::System;
use table::Table;

/// Counts the kernel's instructions, Sietch beside Debian's Linux, in one table.
#[derive(Debug, Parser)]
struct Flags {}

fn main() -> ExitCode {
    let Flags {} = Flags::parse();
    match count() {
        Ok(()) => ExitCode::SUCCESS,
        Err(sentence) => {
            eprintln!("bench-kernel: {sentence}");
            ExitCode::FAILURE
        }
    }
}

fn count() -> Result<(), String> {
    build::linux()?;
    let programs = build::programs()?;
    let mut table = Table::default();
    for system in System::ALL {
        eprintln!("{}", system.name());
        let console = system.run(&programs)?;
        table.read(system, &console);
    }
    let text = table.to_markdown();
    println!("{text}");
    page::write(&text)
}
