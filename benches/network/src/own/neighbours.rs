//! What a program notices of a flood at its neighbour.
//!
//! Two programs of one machine have a VNIC or a virtual function each: a Redis, of which one
//! connection asks request after request, and a UDP echo. Packets come in a bounded flood, in short turns
//! at a station that nobody is, which shows what the generator and QEMU alone take from this host, and at the
//! echo. One vCPU serves both programs; a second one is where they are to be apart.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::time::{Duration, Instant};

use bench_pair::{Guest, System, dynamic_server};
use qemu::namespace;

use super::network::{Network, added, own};
use super::table::Table;
use crate::flood::Flood;
use crate::steadiness::Spread;

const PORT: u16 = 6379;
/// Behind the tap interface, but no station's.
const ABSENT: Ipv4Addr = Ipv4Addr::new(10, 0, 2, 99);
const RATES_PER_S: [u32; 2] = [2000, 10_000];
const CPUS: [u8; 2] = [1, 2];
const TURNS: u32 = 8;
const TURN: Duration = Duration::from_millis(1500);
const WARM_UP: Duration = Duration::from_secs(2);
const ASK: &[u8] = b"GET key\r\n";
const ANSWER: &[u8] = b"$-1\r\n";

/// One round of a network whose programs have links of their own.
pub fn measure(network: Network, divisor: u32, table: &mut Table) -> Result<(), String> {
    for cpus in CPUS {
        let mut guest = boot(network, cpus)?;
        // The card decides which tap interface there is, and that is made anew.
        if !namespace::add_absent_station(ABSENT) {
            return Err("there is no tap interface to flood".into());
        }
        guest.wait_for_answer_at(own(0), PORT, b"PING\r\n")?;
        let mut stream = TcpStream::connect((own(0), PORT)).map_err(text)?;
        stream.set_nodelay(true).map_err(text)?;
        times_us(&mut stream, WARM_UP / divisor).map_err(text)?;
        for per_s in RATES_PER_S {
            let [passing, flooded] = in_turns(&mut stream, per_s, TURNS.div_ceil(divisor))?;
            let head = format!("{cpus} vCPU, {per_s} packets a second");
            let rows = [
                ("past, median, µs", passing.median),
                ("at the neighbour, median, µs", flooded.median),
                ("past, p99, µs", passing.p99),
                ("at the neighbour, p99, µs", flooded.p99),
                ("p99 grows by, %", (flooded.p99 / passing.p99 - 1.0) * 100.0),
            ];
            for (name, figure) in rows {
                table.add(&format!("{head} {name}"), network, figure);
            }
        }
    }
    Ok(())
}

fn text(error: std::io::Error) -> String {
    error.to_string()
}

fn boot(network: Network, cpus: u8) -> Result<Guest, String> {
    let mut args = network.flags()?;
    args.extend(["-m", "512M", "--cpus", &cpus.to_string()].map(String::from));
    args.extend(added(&format!(
        "{}:/bin/udp_echo",
        dynamic_server("udp_echo")?
    )));
    args.extend(added("/usr/bin/redis-server:/bin/redis-server"));
    let script = format!(
        "{}; {} udp_echo & {} exec redis-server --protected-mode no --save ''",
        network.links(2),
        network.variables(1),
        network.variables(0),
    );
    args.extend(["busybox", "sh", "-c", &script].map(String::from));
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    System::Sietch.boot(&args)
}

/// Times of the requests while floods pass by, and while they go to the neighbour.
fn in_turns(stream: &mut TcpStream, per_s: u32, turns: u32) -> Result<[Spread; 2], String> {
    let mut all = [vec![], vec![]];
    for _ in 0..turns {
        for (all, to) in all.iter_mut().zip([ABSENT, own(1)]) {
            let flood = Flood {
                kind: "echo",
                to,
                per_s,
            };
            let times = flood.during(TURN, || times_us(stream, TURN))?;
            all.extend(times.map_err(text)?);
        }
    }
    let spread = |times| Spread::of(times).ok_or("no request was answered");
    let [passing, flooded] = all;
    Ok([spread(passing)?, spread(flooded)?])
}

/// One request after the other.
fn times_us(stream: &mut TcpStream, watched: Duration) -> std::io::Result<Vec<f64>> {
    let (start, mut times) = (Instant::now(), vec![]);
    let mut answer = [0; ANSWER.len()];
    while start.elapsed() < watched {
        let asked = Instant::now();
        stream.write_all(ASK)?;
        stream.read_exact(&mut answer)?;
        if answer != ANSWER {
            return Err(std::io::Error::other("another answer"));
        }
        times.push(asked.elapsed().as_secs_f64() * 1e6);
    }
    Ok(times)
}
