//! Compares Sietch with Debian's Linux as a guest, side by side.
//!
//!     make bench        (or: cargo run --release -p bench-guests -- [ROUNDS])
//!
//! Both boot on the same machine with the same QEMU flags, the same image and the
//! same client; rounds alternate, so that a busy host disturbs both. One virtual CPU,
//! 512 MiB, a tap interface in a network namespace. Each figure is the median of the
//! rounds with their span; the ratio is Sietch's figure divided by that of Linux with
//! `mitigations=off`, the better one for Linux.
//!
//! The table goes to standard output and to `docs/bench.md`.

#![forbid(unsafe_code)]

mod connections;
mod memory;
mod redis;
mod udp;

use std::process::ExitCode;

use bench_pair::{Kernel, System, Table, page};
use clap::Parser;

/// Boots a system, measures, and adds a round's figures to the table.
type Bench = fn(System, &mut Table) -> Result<(), String>;

const BENCHES: [Bench; 3] = [redis::measure, udp::measure, connections::measure];

/// Compares Sietch with Debian's Linux as a guest in the same machine.
#[derive(Debug, Parser)]
struct Flags {
    /// Rounds of each measurement
    #[arg(default_value_t = 3)]
    rounds: u32,
}

fn main() -> ExitCode {
    match compare(&Flags::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(sentence) => {
            eprintln!("bench: {sentence}");
            ExitCode::FAILURE
        }
    }
}

fn compare(flags: &Flags) -> Result<(), String> {
    let rounds = flags.rounds;
    bench_pair::set_up(&[Kernel::Cloud])?;
    let mut table = Table::default();
    for round in 1..=rounds {
        for system in System::ALL {
            eprintln!("round {round} of {rounds}: {}", system.name());
            for bench in BENCHES {
                // A bench that fails leaves its rows without that round.
                if let Err(why) = bench(system, &mut table) {
                    eprintln!("  {} failed: {why}", system.name());
                }
            }
        }
    }
    for system in System::ALL {
        memory::measure(system, &mut table);
    }
    let text = table.to_markdown("one vCPU, 512 MiB");
    println!("{text}");
    write_page(&text, rounds)
}

fn write_page(table: &str, rounds: u32) -> Result<(), String> {
    let text = format!(
        "# Measured against Linux\n\n\
        `make bench` wrote this page on {date}. Both systems ran as guests on the same host in\n\
        {rounds} alternating rounds: the same QEMU flags, image, program and client; one virtual CPU,\n\
        virtio-net on a tap interface in a network namespace. {mitigations}\n\n\
        - {qemu}, emulated (TCG)\n- {redis}\n- Linux: {linux}\n\n{table}",
        date = page::date(),
        mitigations = page::MITIGATIONS,
        qemu = page::qemu(),
        redis = page::first_line("redis-server", &["--version"]),
        linux = page::linux(Kernel::Cloud),
    );
    page::write("docs/bench.md", &text)
}
