//! Two instances of Redis, each with a client of its own.

use std::thread;
use std::time::Instant;

use bench_pair::{Guest, Table};

use crate::client;
use crate::run::Run;

const PORTS: [u16; 2] = [6379, 6380];
/// To each instance.
const REQUESTS: u32 = 60_000;
/// QEMU translates the server's code while it runs for the first time.
const WARM_UP_REQUESTS: u32 = 3_000;
const REDIS: &str = "/usr/bin/redis-server:/usr/bin/redis-server";
const SCRIPT: &str = "redis-server --protected-mode no --save '' --port 6379 & \
    redis-server --protected-mode no --save '' --port 6380";

/// One round.
pub fn measure(run: &Run, table: &mut Table) -> Result<(), String> {
    let mut guest = run.boot(&["--add", REDIS, "busybox", "sh", "-c", SCRIPT])?;
    for port in PORTS {
        guest.wait_for_answer(port, b"PING\r\n")?;
    }
    let requests = run.requests(REQUESTS);
    let both = f64::from(requests) * PORTS.len() as f64;
    for command in ["SET", "GET"] {
        load(command, WARM_UP_REQUESTS)?;
        let (start, before_s) = (Instant::now(), guest.cpu_s());
        load(command, requests)?;
        let rate = both / start.elapsed().as_secs_f64();
        let cpu_us = (guest.cpu_s() - before_s) * 1e6 / both;
        run.add_rate(table, &format!("two Redis, {command}"), rate, cpu_us);
    }
    Ok(())
}

/// Both clients at once; so many requests to each instance.
fn load(command: &str, requests: u32) -> Result<(), String> {
    thread::scope(|scope| {
        let clients = PORTS.map(|port| scope.spawn(move || benchmark(port, command, requests)));
        clients.into_iter().try_for_each(|client| {
            let ended = client.join();
            ended.unwrap_or_else(|_| Err("a client panicked".into()))
        })
    })
}

fn benchmark(port: u16, command: &str, requests: u32) -> Result<(), String> {
    let host = Guest::address(port).ip().to_string();
    let (port, requests) = (port.to_string(), requests.to_string());
    let command = command.to_lowercase();
    let args = [
        "--csv", "-c", "50", "-h", &host, "-p", &port, "-t", &command, "-n", &requests,
    ];
    client::run("redis-benchmark", &args).map(drop)
}
