//! Compares Sietch with Debian's Linux as a guest, side by side.
//!
//!     make bench        (or: cargo run --release -p bench-guests -- [ROUNDS])
//!
//! Both boot on the same machine with the same QEMU flags, the same image and the
//! same client; rounds alternate, so that a busy host disturbs both. One virtual CPU,
//! 512 MiB, a tap interface in a network namespace. Each figure is the median of the
//! rounds with their span; the ratio is Sietch's figure through Linux'.
//!
//! The table goes to standard output and to `docs/bench.md`.

#![forbid(unsafe_code)]

mod connections;
mod guest;
mod memory;
mod redis;
mod table;
mod udp;

use std::process::{Command, ExitCode};

use guest::System;
use table::Table;

/// Boots a system, measures, and adds a round's figures to the table.
type Bench = fn(System, &mut Table) -> Result<(), String>;

const BENCHES: [Bench; 3] = [redis::measure, udp::measure, connections::measure];

/// Rounds unless the command line says otherwise.
const ROUNDS: u32 = 3;

fn main() -> ExitCode {
    qemu::namespace::enter();
    match compare() {
        Ok(()) => ExitCode::SUCCESS,
        Err(sentence) => {
            eprintln!("bench: {sentence}");
            ExitCode::FAILURE
        }
    }
}

fn compare() -> Result<(), String> {
    if !qemu::namespace::set_up() {
        return Err("a network namespace with a tap interface needs root: run as root.".into());
    }
    prepare_linux()?;
    let rounds = std::env::args()
        .nth(1)
        .and_then(|text| text.parse().ok())
        .unwrap_or(ROUNDS);
    let mut table = Table::default();
    for round in 1..=rounds {
        for system in [System::Linux, System::Sietch] {
            eprintln!("round {round} of {rounds}: {}", system.name());
            for bench in BENCHES {
                // A bench that fails leaves its rows without that round.
                if let Err(why) = bench(system, &mut table) {
                    eprintln!("  {} failed: {why}", system.name());
                }
            }
        }
    }
    for system in [System::Linux, System::Sietch] {
        memory::measure(system, &mut table);
    }
    let text = table.to_markdown();
    println!("{text}");
    table::write_page(&text, rounds)
}

fn prepare_linux() -> Result<(), String> {
    let prepared = Command::new("tools/linux-guest.sh").status();
    match prepared.is_ok_and(|status| status.success()) {
        true => Ok(()),
        false => Err("Debian's Linux cannot be prepared as a guest: see above.".into()),
    }
}
