//! Redis: start to first PONG, ping, requests per second, CPU time per request, memory.

use std::process::Command;

use bench_pair::{Better, Guest, System, Table};

const PORT: u16 = 6379;
const PLAIN_REQUESTS: u32 = 60_000;
const PIPELINED_REQUESTS: u32 = 400_000;

/// One round.
pub fn measure(system: System, table: &mut Table) -> Result<(), String> {
    let args = [
        "-m",
        "512M",
        "redis-server",
        "--protected-mode",
        "no",
        "--save",
        "",
    ];
    let mut guest = system.boot(&args)?;
    let start = guest.wait_for_answer(PORT, b"PING\r\n")?;
    table.add(
        "start of QEMU to first PONG, s",
        Better::Less,
        system,
        start.as_secs_f64(),
    );
    table.add("ping, mean, ms", Better::Less, system, ping_ms()?);
    let passes = [
        ("", "1", PLAIN_REQUESTS),
        (", pipeline 16", "16", PIPELINED_REQUESTS),
    ];
    for (suffix, pipeline, requests) in passes {
        let before_s = guest.cpu_s();
        for command in ["SET", "GET"] {
            let rate = requests_per_s(command, pipeline, requests)?;
            let row = format!("redis {command}, 50 clients{suffix}, k/s");
            table.add(&row, Better::More, system, rate / 1000.0);
        }
        let cpu_us = (guest.cpu_s() - before_s) * 1e6 / f64::from(2 * requests);
        let row = format!("QEMU's CPU time per request{suffix}, µs");
        table.add(&row, Better::Less, system, cpu_us);
    }
    table.add(
        "memory of the QEMU process, MiB",
        Better::Less,
        system,
        guest.resident_mib(),
    );
    Ok(())
}

fn requests_per_s(command: &str, pipeline: &str, requests: u32) -> Result<f64, String> {
    let host = Guest::address(PORT).ip().to_string();
    let output = Command::new("redis-benchmark")
        .args([
            "--csv",
            "-h",
            &host,
            "-c",
            "50",
            "-P",
            pipeline,
            "-t",
            &command.to_lowercase(),
        ])
        .args(["-n", &requests.to_string()])
        .output()
        .map_err(|error| format!("redis-benchmark: {error}"))?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    // "SET","17825.31",...
    let row = text
        .lines()
        .find(|line| line.starts_with(&format!("\"{command}\"")));
    let rate = row
        .and_then(|row| row.split('"').nth(3))
        .and_then(|rate| rate.parse().ok());
    rate.ok_or_else(|| format!("redis-benchmark says {text:?}"))
}

fn ping_ms() -> Result<f64, String> {
    let host = Guest::address(PORT).ip().to_string();
    let output = Command::new("ping")
        .args(["-q", "-c", "100", "-i", "0.01", &host])
        .output();
    let output = output.map_err(|error| format!("ping: {error}"))?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    // rtt min/avg/max/mdev = 0.100/0.148/0.300/0.050 ms
    let mean = text
        .lines()
        .find_map(|line| line.split(" = ").nth(1)?.split('/').nth(1));
    let mean = mean.and_then(|mean| mean.parse().ok());
    mean.ok_or_else(|| format!("ping says {text:?}"))
}
