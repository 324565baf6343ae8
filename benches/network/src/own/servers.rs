//! Rates of unmodified servers and QEMU's CPU time for a request, by each network.

use std::net::{Ipv4Addr, UdpSocket};
use std::time::{Duration, Instant};

use bench_pair::echo::{DATAGRAM_BYTES, Echo};
use bench_pair::{Guest, dynamic_server};

use super::network::{Network, Program};
use super::table::Table;
use super::{loads, programs};
use crate::client;

/// A server, and its loads.
pub type Server = fn(Network, u32, &mut Table) -> Result<(), String>;

/// All servers.
pub const ALL: [Server; 5] = [redis, memcached, nginx, echo, connections];

/// Requests of a full measurement.
const REDIS_REQUESTS: u32 = 40_000;
const PIPELINED_REQUESTS: u32 = 200_000;
const CONNECTIONS: u32 = 6000;
/// How long other loads last.
const SECONDS: u32 = 4;
/// QEMU translates the server's code while it runs for the first time.
const WARM_UP_DIVISOR: u32 = 10;

/// What a load of so many requests costs: the client's rate if it says one, else that by time.
fn measured(
    guest: &Guest,
    load: impl FnOnce() -> Result<(f64, Option<f64>), String>,
) -> Result<(f64, f64), String> {
    let (start, before_s) = (Instant::now(), guest.cpu_s());
    let (requests, rate) = load()?;
    let rate = rate.unwrap_or(requests / start.elapsed().as_secs_f64());
    Ok((rate, (guest.cpu_s() - before_s) * 1e6 / requests))
}

fn add(table: &mut Table, name: &str, network: Network, (rate, cpu_us): (f64, f64)) {
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
            let ask = |requests| benchmark(network.address(), command, pipeline, requests);
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

fn benchmark(host: Ipv4Addr, command: &str, pipeline: &str, requests: u32) -> Result<(), String> {
    let (host, requests) = (host.to_string(), requests.to_string());
    let command = command.to_lowercase();
    let args = [
        "--csv", "-c", "50", "-h", &host, "-t", &command, "-P", pipeline, "-n", &requests,
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

fn echo(network: Network, divisor: u32, table: &mut Table) -> Result<(), String> {
    let program = Program {
        path: dynamic_server("udp_echo")?,
        args: vec![],
        files: vec![],
    };
    let echo = Echo::at(network.boot(&program)?, network.address())?;
    for window in [64, 1] {
        let time = Duration::from_secs(SECONDS.div_ceil(divisor).into());
        echoes(&echo.socket, window, time / WARM_UP_DIVISOR).map_err(text)?;
        let ask = || Ok((echoes(&echo.socket, window, time).map_err(text)?, None));
        let figures = measured(&echo.guest, ask)?;
        add(
            table,
            &format!("UDP echo, window {window}"),
            network,
            figures,
        );
    }
    Ok(())
}

/// How many came back. What silence ends is lost, and sent anew.
fn echoes(socket: &UdpSocket, window: u32, time: Duration) -> std::io::Result<f64> {
    let (start, mut count) = (Instant::now(), 0_u32);
    let mut datagram = [0; DATAGRAM_BYTES];
    let send_window = || (0..window).try_for_each(|_| socket.send(&[0; DATAGRAM_BYTES]).map(drop));
    send_window()?;
    while start.elapsed() < time {
        match socket.recv(&mut datagram) {
            Ok(_) => {
                count += 1;
                socket.send(&datagram)?;
            }
            Err(_) => send_window()?,
        }
    }
    // What is still under way must not count for the next window.
    while socket.recv(&mut datagram).is_ok() {}
    Ok(count.into())
}

/// Of new connections.
const CLIENTS: u32 = 100;

fn connections(network: Network, divisor: u32, table: &mut Table) -> Result<(), String> {
    let program = Program {
        path: dynamic_server("http_once")?,
        args: vec![],
        files: vec![],
    };
    let mut guest = network.boot(&program)?;
    guest.wait_for_answer_at(network.address(), 80, b"GET / HTTP/1.0\r\n\r\n")?;
    let url = format!("http://{}/", network.address());
    let ask = |requests: u32| {
        let said = client::run(
            "ab",
            &[
                "-q",
                "-c",
                &CLIENTS.to_string(),
                "-n",
                &requests.to_string(),
                &url,
            ],
        )?;
        match client::number(&said, "Failed requests:")? {
            0.0 => Ok((f64::from(requests), None)),
            failed => Err(format!("{failed} of {requests} connections failed")),
        }
    };
    let requests = CONNECTIONS / divisor;
    // Where an answer comes before all clients have connected, ab opens a connection more than it needs, and never
    // asks by it: a server that serves one after the other would wait for that one, unless more requests are to come.
    ask((requests / WARM_UP_DIVISOR).max(2 * CLIENTS))?;
    let figures = measured(&guest, || ask(requests))?;
    add(table, "new connections, 100 clients", network, figures);
    Ok(())
}

fn text(error: std::io::Error) -> String {
    error.to_string()
}
