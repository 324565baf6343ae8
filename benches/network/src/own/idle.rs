//! A Redis without requests: QEMU's CPU time, and how soon it answers the first one.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::thread;
use std::time::{Duration, Instant};

use bench_pair::median;

use super::network::Network;
use super::programs;
use super::table::Table;

const PORT: u16 = 6379;
const ASK: &[u8] = b"GET key\r\n";
const ANSWER: &[u8] = b"$-1\r\n";
const WATCHED: Duration = Duration::from_secs(5);
/// What a system may take to come to rest.
const REST: Duration = Duration::from_secs(2);
const PAUSE: Duration = Duration::from_secs(1);
const PAUSES: u32 = 20;
/// Requests one after the other, as many again before them.
const LOADED: u32 = 2000;

/// One round.
pub fn measure(network: Network, divisor: u32, table: &mut Table) -> Result<(), String> {
    let mut guest = network.boot(&programs::redis())?;
    guest.wait_for_answer_at(network.address(), PORT, b"PING\r\n")?;
    let mut stream = connect(network).map_err(text)?;
    for _ in 0..LOADED / divisor {
        ask_us(&mut stream).map_err(text)?;
    }
    let loaded = times(LOADED / divisor, || ask_us(&mut stream))?;
    thread::sleep(REST);
    let before_s = guest.cpu_s();
    thread::sleep(WATCHED);
    let idle_ms = (guest.cpu_s() - before_s) * 1000.0;
    let first = times(PAUSES.div_ceil(divisor), || {
        thread::sleep(PAUSE);
        ask_us(&mut stream)
    })?;
    let rows = [
        ("QEMU's CPU time in 5 s without a request, ms", idle_ms),
        (
            "answer to requests one after the other, median of 2000, µs",
            loaded,
        ),
        (
            "answer to the first one after a second, median of 20, µs",
            first,
        ),
    ];
    for (name, figure) in rows {
        table.add(name, network, figure);
    }
    Ok(())
}

fn text(error: std::io::Error) -> String {
    error.to_string()
}

fn connect(network: Network) -> std::io::Result<TcpStream> {
    let stream = TcpStream::connect((network.address(), PORT))?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(Duration::from_secs(5)))?;
    Ok(stream)
}

/// The time until an answer.
fn ask_us(stream: &mut TcpStream) -> std::io::Result<f64> {
    let (start, mut answer) = (Instant::now(), [0; ANSWER.len()]);
    stream.write_all(ASK)?;
    stream.read_exact(&mut answer)?;
    match answer == ANSWER {
        true => Ok(start.elapsed().as_secs_f64() * 1e6),
        false => Err(std::io::Error::other("another answer")),
    }
}

/// The median of several.
fn times(count: u32, mut one: impl FnMut() -> std::io::Result<f64>) -> Result<f64, String> {
    let times: Result<Vec<f64>, _> = (0..count).map(|_| one()).collect();
    median(&times.map_err(text)?).ok_or_else(|| "no request was made".into())
}
