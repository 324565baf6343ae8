//! More virtual CPUs: what a request costs there, and how many more are answered.
//!
//! memcached has as many threads and nginx as many workers as there are vCPUs. Instructions are counted, all of
//! the machine, so they do not depend on this host; that more vCPUs than it has CPUs run shows only what
//! they cost each other. Rates are those of slow vCPUs (as in `docs/bench-network.md`), which leave the
//! host enough for clients and for a second one.

use std::net::Ipv4Addr;

use bench_pair::{Guest, counter};
use qemu::Accel;

use super::loads::{self, Load};
use super::network::{Network, Program, refs};
use super::programs;
use super::table::Table;

/// Those of which each process or thread can have a part.
const NETWORKS: [Network; 3] = [Network::Linux, Network::Sockets, Network::Vnic];
const COUNTED_CPUS: [u8; 3] = [1, 2, 4];
const SLOW_CPUS: [u8; 2] = [1, 2];
const SECONDS: u32 = 6;

/// A server that uses several CPUs, and its load.
struct Server {
    name: &'static str,
    port: u16,
    ask: &'static [u8],
    program: fn(u8) -> Result<Program, String>,
    load: fn(Ipv4Addr, u32) -> Result<Load, String>,
}

const SERVERS: [Server; 2] = [
    Server {
        name: "memcached",
        port: 11211,
        ask: b"version\r\n",
        program: |threads| Ok(programs::memcached(threads)),
        load: loads::memcached,
    },
    Server {
        name: "nginx",
        port: 80,
        ask: b"GET / HTTP/1.0\r\n\r\n",
        program: |workers| programs::nginx(Some(workers)),
        load: loads::nginx,
    },
];

/// One round. What fails is told, and lacks this round.
pub fn measure(divisor: u32, table: &mut Table) {
    let seconds = SECONDS.div_ceil(divisor);
    for server in &SERVERS {
        for network in NETWORKS {
            let counted = COUNTED_CPUS.map(|cpus| counted(server, network, cpus, seconds, table));
            let slow = SLOW_CPUS.map(|cpus| slow(server, network, cpus, seconds, table));
            for why in counted.into_iter().chain(slow).filter_map(Result::err) {
                eprintln!("  failed: {} on {}: {why}", server.name, network.name());
            }
        }
    }
}

fn counted(
    server: &Server,
    network: Network,
    cpus: u8,
    seconds: u32,
    table: &mut Table,
) -> Result<(), String> {
    let args = network.args(&(server.program)(cpus)?, cpus)?;
    let guest = counter::boot(network.system(), &refs(&args))?;
    let _guest = warm(server, network, guest)?;
    let before = counter::read()?;
    let (requests, _) = (server.load)(network.address(), seconds)?;
    let instructions = counter::read()?.since(&before).total();
    let name = format!("{}, {cpus} vCPU: instructions per request", server.name);
    table.add(&name, network, instructions as f64 / requests);
    Ok(())
}

fn slow(
    server: &Server,
    network: Network,
    cpus: u8,
    seconds: u32,
    table: &mut Table,
) -> Result<(), String> {
    let args = network.args(&(server.program)(cpus)?, cpus)?;
    let guest = network.system().boot_on(&refs(&args), |machine| {
        machine.accel = Accel::TcgSlow;
    })?;
    let _guest = warm(server, network, guest)?;
    let (requests, rate) = (server.load)(network.address(), seconds)?;
    let rate = rate.unwrap_or(requests / f64::from(seconds));
    let name = format!("{}, {cpus} slow vCPU: k/s", server.name);
    table.add(&name, network, rate / 1000.0);
    Ok(())
}

/// A server that has answered for a moment, and whose code is translated.
fn warm(server: &Server, network: Network, mut guest: Guest) -> Result<Guest, String> {
    guest.wait_for_answer_at(network.address(), server.port, server.ask)?;
    (server.load)(network.address(), 1)?;
    Ok(guest)
}
