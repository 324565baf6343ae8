//! Whether the limit of a VNIC (`dladm`'s `maxbw`) holds for a program that owns it.
//!
//! The program sends datagrams as fast as it may, more than the limit lets pass. The rate is that of bytes of
//! frames that arrive on this host, whose clock is the guest's. Each datagram has the time at which the program
//! sent it, which shows for how long they lie in the program's ring.
//!
//! Linux' network interfaces have no such property, so nothing stands beside it.

use std::net::UdpSocket;
use std::time::{Duration, Instant};

use bench_pair::{Guest, System, dynamic};

use super::network::{Network, added};
use super::table::Table;

const PORT: u16 = 5001;
const HOST: &str = "10.0.2.2";
const SOURCE: &str = "benches/network/programs/datagrams_for.c";
const LIMITS_MBIT: [u32; 3] = [5, 20, 50];
const SECONDS: u32 = 8;
/// Ethernet's, IPv4's and UDP's headers are part of a frame.
const HEADER_BYTES: usize = 14 + 20 + 8;
/// A burst is no rate: the first second does not count.
const SETTLED_NS: u64 = 1_000_000_000;
/// After so much silence the program has ended.
const SILENCE: Duration = Duration::from_secs(3);
/// How long the machine may take to the first datagram.
const PATIENCE: Duration = Duration::from_secs(40);

/// One round.
pub fn measure(divisor: u32, table: &mut Table) -> Result<(), String> {
    for mbit in LIMITS_MBIT {
        let socket = UdpSocket::bind((HOST, PORT)).map_err(text)?;
        let _guest = boot(mbit, SECONDS.div_ceil(divisor).max(3))?;
        let arrivals = received(&socket)?;
        let rate = rate(&arrivals).ok_or_else(|| format!("{} datagrams came", arrivals.len()))?;
        let distance = (rate / 1e6 - f64::from(mbit)) / f64::from(mbit) * 100.0;
        let rows = [
            ("Mbit a second that arrive", rate / 1e6),
            ("their distance from the limit, %", distance),
            (
                "longest time without a datagram, ms",
                longest_gap_ms(&arrivals, |one| one.arrival_ns),
            ),
            (
                "longest time in which the program sent none that arrived, ms",
                longest_gap_ms(&arrivals, |one| one.sent_ns),
            ),
        ];
        for (name, figure) in rows {
            table.add(&format!("`maxbw={mbit}M`: {name}"), Network::Vnic, figure);
        }
    }
    Ok(())
}

fn text(error: std::io::Error) -> String {
    error.to_string()
}

fn boot(mbit: u32, seconds: u32) -> Result<Guest, String> {
    let program = dynamic(SOURCE)?;
    let mut args = Network::Vnic.flags()?;
    args.extend(["-m", "512M"].map(String::from));
    args.extend(added(&format!("{program}:/bin/datagrams_for")));
    let script = format!(
        "{}; dladm set-linkprop -t -p maxbw={mbit}M vnic0; {} datagrams_for {HOST} {PORT} {seconds}; sleep 60",
        Network::Vnic.links(1),
        Network::Vnic.variables(0)
    );
    args.extend(["busybox", "sh", "-c", &script].map(String::from));
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    System::Sietch.boot(&args)
}

/// A datagram, by this host's clock and by the guest's.
struct Arrival {
    arrival_ns: u64,
    sent_ns: u64,
    frame_bytes: usize,
}

/// What arrives until nothing does.
fn received(socket: &UdpSocket) -> Result<Vec<Arrival>, String> {
    let (start, mut datagram) = (Instant::now(), [0; 2048]);
    let mut arrivals = vec![];
    socket.set_read_timeout(Some(PATIENCE)).map_err(text)?;
    while let Ok(bytes) = socket.recv(&mut datagram) {
        arrivals.push(Arrival {
            arrival_ns: start.elapsed().as_nanos() as u64,
            sent_ns: datagram
                .first_chunk()
                .copied()
                .map_or(0, u64::from_le_bytes),
            frame_bytes: bytes + HEADER_BYTES,
        });
        socket.set_read_timeout(Some(SILENCE)).map_err(text)?;
    }
    Ok(arrivals)
}

/// Bits a second, without those of the first second.
fn rate(arrivals: &[Arrival]) -> Option<f64> {
    let start = arrivals.first()?.arrival_ns + SETTLED_NS;
    let mut settled = arrivals.iter().filter(|one| one.arrival_ns >= start);
    let from = settled.next()?.arrival_ns;
    let to = arrivals.last()?.arrival_ns;
    let bytes: usize = settled.map(|one| one.frame_bytes).sum();
    (to > from).then(|| bytes as f64 * 8.0 * 1e9 / (to - from) as f64)
}

fn longest_gap_ms(arrivals: &[Arrival], at: fn(&Arrival) -> u64) -> f64 {
    let pairs = arrivals.iter().zip(arrivals.iter().skip(1));
    let longest = pairs
        .map(|(one, next)| at(next).saturating_sub(at(one)))
        .max();
    longest.unwrap_or(0) as f64 / 1e6
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arrival(arrival_ns: u64, frame_bytes: usize) -> Arrival {
        Arrival {
            arrival_ns,
            sent_ns: 0,
            frame_bytes,
        }
    }

    #[test]
    fn the_first_second_is_no_rate() {
        let arrivals = [(0, 5000), (1, 5000), (SETTLED_NS, 9), (SETTLED_NS * 2, 125)];
        let arrivals = arrivals.map(|(time, bytes)| arrival(time, bytes));
        assert_eq!(rate(&arrivals), Some(1000.0));
        assert_eq!(rate(&[]), None);
        assert_eq!(longest_gap_ms(&arrivals, |one| one.arrival_ns), 1000.0);
    }
}
