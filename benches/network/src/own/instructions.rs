//! Instructions of the guest for a request, all of them and by whose they are ([`super::whose`]).
//!
//! They do not depend on how fast this host is, only how many requests gather before a guest looks does.

use std::net::Ipv4Addr;
use std::time::Duration;

use bench_pair::{Guest, counter};

use super::echoes::{self, Native};
use super::loads;
use super::network::{Network, Program, refs};
use super::programs;
use super::servers;
use super::table::Table;
use super::whose::{Maps, Part, TELLING};

/// A load for about a whole measurement through this: how many requests were answered.
type Load = fn(Ipv4Addr, u32) -> Result<f64, String>;

/// A server, how one knows that it serves, and its loads by their names.
struct Server {
    program: fn() -> Result<Program, String>,
    ask: Option<(u16, &'static [u8])>,
    loads: &'static [(&'static str, Load)],
}

const REDIS: &[(&str, Load)] = &[
    ("Redis GET, 50 clients", |host, divisor| {
        redis(host, ("GET", "50", "1"), 10_000 / divisor)
    }),
    ("Redis GET, one client", |host, divisor| {
        redis(host, ("GET", "1", "1"), 3000 / divisor)
    }),
    ("Redis GET, 50 clients, `-P 16`", |host, divisor| {
        redis(host, ("GET", "50", "16"), 50_000 / divisor)
    }),
    ("Redis SET, 50 clients", |host, divisor| {
        redis(host, ("SET", "50", "1"), 10_000 / divisor)
    }),
    ("Redis SET, 50 clients, `-P 16`", |host, divisor| {
        redis(host, ("SET", "50", "16"), 50_000 / divisor)
    }),
];

const SERVERS: [Server; 5] = [
    Server {
        program: || Ok(programs::redis()),
        ask: Some((6379, b"PING\r\n")),
        loads: REDIS,
    },
    Server {
        program: || Ok(programs::memcached(1)),
        ask: Some((11211, b"version\r\n")),
        loads: &[("memcached, 50 clients", |host, divisor| {
            Ok(loads::memcached(host, SECONDS.div_ceil(divisor))?.0)
        })],
    },
    Server {
        program: || programs::nginx(None),
        ask: Some((80, b"GET / HTTP/1.0\r\n\r\n")),
        loads: &[(
            "nginx, 1 KiB, 50 connections, one process",
            |host, divisor| Ok(loads::nginx(host, SECONDS.div_ceil(divisor))?.0),
        )],
    },
    Server {
        program: || servers::program("http_once"),
        ask: Some((80, b"GET / HTTP/1.0\r\n\r\n")),
        loads: &[("new connections, 100 clients", |host, divisor| {
            servers::connect(host, (2000 / divisor).max(servers::CONNECTIONS_MIN))
        })],
    },
    Server {
        program: || servers::program("udp_echo"),
        ask: None,
        loads: &[
            ("UDP echo, window 64", |host, divisor| {
                echo(host, 64, divisor)
            }),
            ("UDP echo, window 1", |host, divisor| echo(host, 1, divisor)),
        ],
    },
];

const SECONDS: u32 = 2;
/// A load that makes a guest warm is so much smaller.
const WARM_UP_DIVISOR: u32 = 8;

fn redis(
    host: Ipv4Addr,
    (command, clients, pipeline): (&str, &str, &str),
    requests: u32,
) -> Result<f64, String> {
    servers::benchmark(host, command, clients, pipeline, requests)?;
    Ok(requests.into())
}

fn echo(host: Ipv4Addr, window: u32, divisor: u32) -> Result<f64, String> {
    let text = |error: std::io::Error| error.to_string();
    let socket = bench_pair::echo::connect(host).map_err(text)?;
    let time = Duration::from_secs(SECONDS.into()) / divisor;
    echoes::echoes(&socket, window, time).map_err(text)
}

/// One round. What fails is told, and is lacking.
pub fn measure(network: Network, divisor: u32, table: &mut Table) {
    let servers = SERVERS
        .iter()
        .map(|server| of(server, network, divisor, table));
    let all: Vec<_> = servers.collect();
    let natives = Native::ALL.map(|native| of_native(native, network, divisor, table));
    for why in all.into_iter().chain(natives).filter_map(Result::err) {
        eprintln!("  failed: {why}");
    }
}

fn of(server: &Server, network: Network, divisor: u32, table: &mut Table) -> Result<(), String> {
    let args = network.args_by(&(server.program)()?, 1, TELLING)?;
    let mut guest = counter::boot_as_it_is(network.system(), &refs(&args))?;
    let maps = guest.find_in_output("say where its code is", Maps::told)?;
    match server.ask {
        Some((port, ask)) => guest
            .wait_for_answer_at(network.address(), port, ask)
            .map(drop)?,
        None => echoes::wait_for_echo(&mut guest, network.address())?,
    }
    for (name, load) in server.loads {
        load(network.address(), WARM_UP_DIVISOR * divisor)?;
        let before = counter::read()?;
        let requests = load(network.address(), divisor)?;
        let parts = maps.split(&counter::read()?.since(&before));
        let all: u64 = parts.values().sum();
        table.add(name, network, all as f64 / requests);
        for part in Part::ALL {
            let own = parts.get(&part).copied().unwrap_or_default();
            let name = format!("{name}: {}", part.name());
            table.add(&name, network, own as f64 / requests);
        }
    }
    Ok(())
}

fn of_native(
    native: Native,
    network: Network,
    divisor: u32,
    table: &mut Table,
) -> Result<(), String> {
    let Some(args) = network.args_native(&native.program()?)? else {
        return Ok(());
    };
    let mut guest: Guest = counter::boot_as_it_is(network.system(), &refs(&args))?;
    echoes::wait_for_echo(&mut guest, network.address())?;
    for window in [64, 1] {
        let load = |divisor| echo(network.address(), window, divisor);
        load(WARM_UP_DIVISOR * divisor)?;
        let before = counter::read()?;
        let requests = load(divisor)?;
        let all = counter::read()?.since(&before).total();
        let name = format!("{}, window {window}", native.name());
        table.add(&name, network, all as f64 / requests);
    }
    Ok(())
}
