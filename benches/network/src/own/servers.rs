//! Rates of unmodified servers and QEMU's CPU time for a request, by each network.

use std::net::Ipv4Addr;
use std::time::Instant;

use bench_pair::{Guest, dynamic_server};

use super::network::{Network, Program};
use super::table::Table;
use super::{echoes, loads, programs};
use crate::client;

/// A server, and its loads.
pub type Server = fn(Network, u32, &mut Table) -> Result<(), String>;

/// All servers.
pub const ALL: [Server; 5] = [redis, memcached, nginx, echoes::sockets, echoes::natives];

/// Requests of a full measurement.
const REDIS_REQUESTS: u32 = 20_000;
const PIPELINED_REQUESTS: u32 = 100_000;
const CONNECTIONS: u32 = 6000;
/// How long other loads last.
pub const SECONDS: u32 = 4;
/// QEMU translates the server's code while it runs for the first time.
pub const WARM_UP_DIVISOR: u32 = 10;

/// What a load of so many requests costs: the client's rate if it says one, else that by time.
pub fn measured(
    guest: &Guest,
    load: impl FnOnce() -> Result<(f64, Option<f64>), String>,
) -> Result<(f64, f64), String> {
    let (start, before_s) = (Instant::now(), guest.cpu_s());
    let (requests, rate) = load()?;
    let rate = rate.unwrap_or(requests / start.elapsed().as_secs_f64());
    Ok((rate, (guest.cpu_s() - before_s) * 1e6 / requests))
}

/// Both figures of a load.
pub fn add(table: &mut Table, name: &str, network: Network, (rate, cpu_us): (f64, f64)) {
    table.add(&format!("{name}, k/s"), network, rate / 1000.0);
    let name = format!("{name}: QEMU's CPU time per request, µs");
    table.add(&name, network, cpu_us);
}

fn redis(network: Network, divisor: u32, table: &mut Table) -> Result<(), String> {
    let mut guest = network.boot(&programs::redis())?;
    guest.wait_for_answer_at(network.address(), 6379, b"PING\r\n")?;
    for (pipeline, requests) in [("1", REDIS_REQUESTS), ("16", PIPELINED_REQUESTS)] {
        let requests = requests / divisor;
        for command in ["GET", "SET"] {
            let ask = |requests| benchmark(network.address(), command, "50", pipeline, requests);
            ask(requests / WARM_UP_DIVISOR)?;
            let figures = measured(&guest, || ask(requests).map(|()| (requests.into(), None)))?;
            let name = match pipeline {
                "1" => format!("Redis {command}, 50 clients"),
                _ => format!("Redis {command}, 50 clients, `-P {pipeline}`"),
            };
            add(table, &name, network, figures);
        }
    }
    Ok(())
}

/// Requests to Redis by so many clients, so many at a time each.
pub fn benchmark(
    host: Ipv4Addr,
    command: &str,
    clients: &str,
    pipeline: &str,
    requests: u32,
) -> Result<(), String> {
    let (host, requests) = (host.to_string(), requests.to_string());
    let command = command.to_lowercase();
    let args = [
        "--csv", "-c", clients, "-h", &host, "-t", &command, "-P", pipeline, "-n", &requests,
    ];
    client::run("redis-benchmark", &args).map(drop)
}

fn memcached(network: Network, divisor: u32, table: &mut Table) -> Result<(), String> {
    let mut guest = network.boot(&programs::memcached(1))?;
    guest.wait_for_answer_at(network.address(), 11211, b"version\r\n")?;
    loads::memcached(network.address(), 1)?;
    let load = || loads::memcached(network.address(), SECONDS.div_ceil(divisor));
    let figures = measured(&guest, load)?;
    add(table, "memcached, 50 clients", network, figures);
    Ok(())
}

fn nginx(network: Network, divisor: u32, table: &mut Table) -> Result<(), String> {
    let mut guest = network.boot(&programs::nginx(None)?)?;
    guest.wait_for_answer_at(network.address(), 80, b"GET / HTTP/1.0\r\n\r\n")?;
    loads::nginx(network.address(), 1)?;
    let load = || loads::nginx(network.address(), SECONDS.div_ceil(divisor));
    let figures = measured(&guest, load)?;
    add(
        table,
        "nginx, 1 KiB, 50 connections, one process",
        network,
        figures,
    );
    Ok(())
}

/// Of new connections.
const CLIENTS: u32 = 100;

// Where an answer comes before all clients have connected, ab opens a connection more than it needs, and never
// asks by it: a server that serves one after the other would wait for that one, unless more requests are to come.
/// As few as may be asked for.
pub const CONNECTIONS_MIN: u32 = 6 * CLIENTS;

/// Of connections that serve one request each.
pub fn connections(network: Network, divisor: u32, table: &mut Table) -> Result<(), String> {
    let mut guest = network.boot(&program("http_once")?)?;
    let host = network.address();
    guest.wait_for_answer_at(host, 80, b"GET / HTTP/1.0\r\n\r\n")?;
    let requests = CONNECTIONS / divisor;
    connect(host, (requests / WARM_UP_DIVISOR).max(CONNECTIONS_MIN))?;
    let figures = measured(&guest, || Ok((connect(host, requests)?, None)))?;
    add(table, "new connections, 100 clients", network, figures);
    Ok(())
}

/// So many requests, each by a connection of its own.
pub fn connect(host: Ipv4Addr, requests: u32) -> Result<f64, String> {
    let (url, clients, count) = (
        format!("http://{host}/"),
        CLIENTS.to_string(),
        requests.to_string(),
    );
    let said = client::run("ab", &["-q", "-c", &clients, "-n", &count, &url])?;
    match client::number(&said, "Failed requests:")? {
        0.0 => Ok(requests.into()),
        failed => Err(format!("{failed} of {requests} connections failed")),
    }
}

/// One of our own servers.
pub fn program(name: &str) -> Result<Program, String> {
    Ok(Program {
        path: dynamic_server(name)?,
        args: vec![],
        files: vec![],
    })
}
