//! The smallest memory in which Redis still serves, by halving the interval.

use std::process::Command;

use bench_pair::{Better, Guest, System, Table};

const PORT: u16 = 6379;
const STEP_MIB: u32 = 2;
const FROM_MIB: u32 = 16;
const TO_MIB: u32 = 256;

/// Searches once: the figure does not depend on the host's mood.
pub fn measure(system: System, table: &mut Table) {
    let (mut fails, mut serves) = (FROM_MIB - STEP_MIB, TO_MIB + STEP_MIB);
    while serves - fails > STEP_MIB {
        let middle = (fails + serves) / 2 / STEP_MIB * STEP_MIB;
        match serves_in(system, middle) {
            true => serves = middle,
            false => fails = middle,
        }
        eprintln!(
            "{}: serves in {serves} MiB, not in {fails} MiB",
            system.name()
        );
    }
    if serves <= TO_MIB {
        let row = "smallest memory that serves Redis, MiB";
        table.add(row, Better::Less, system, f64::from(serves));
    }
}

fn serves_in(system: System, memory_mib: u32) -> bool {
    let memory = format!("{memory_mib}M");
    let args = [
        "-m",
        &memory,
        "redis-server",
        "--protected-mode",
        "no",
        "--save",
        "",
    ];
    let Ok(mut guest) = system.boot(&args) else {
        return false;
    };
    if guest.wait_for_answer(PORT, b"PING\r\n").is_err() {
        return false;
    }
    let host = Guest::address(PORT).ip().to_string();
    let output = Command::new("timeout")
        .args([
            "20",
            "redis-benchmark",
            "-q",
            "-h",
            &host,
            "-n",
            "2000",
            "-c",
            "20",
            "-t",
            "set,get",
        ])
        .output();
    output.is_ok_and(|output| output.status.success())
}
