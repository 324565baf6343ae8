//! The time of one datagram there and back, with nothing else under way.

use std::io;
use std::net::UdpSocket;
use std::time::{Duration, Instant};

use bench_pair::echo::{DATAGRAM_BYTES, Echo};
use bench_pair::{Better, Table};

use crate::run::Run;
use crate::steadiness::Spread;

const SECONDS: u32 = 6;

/// One round.
pub fn measure(run: &Run, table: &mut Table) -> Result<(), String> {
    let echo = Echo::boot(run.system, &["-m", "512M"])?;
    let time = Duration::from_secs(run.amount(SECONDS).into());
    let times = round_trips_us(&echo.socket, time).map_err(|error| format!("udp: {error}"))?;
    let spread = Spread::of(times).ok_or("no datagram came back")?;
    for (what, figure) in [("median", spread.median), ("p99", spread.p99)] {
        let name = format!("UDP round trip, 64 B, {what}, µs");
        table.add(&name, Better::Less, run.system, figure);
    }
    Ok(())
}

fn round_trips_us(socket: &UdpSocket, time: Duration) -> io::Result<Vec<f64>> {
    let mut times = Vec::new();
    let start = Instant::now();
    while start.elapsed() < time {
        let (sent, mut received) = (times.len() as u64, [0; DATAGRAM_BYTES]);
        let mut datagram = [0; DATAGRAM_BYTES];
        datagram[..8].copy_from_slice(&sent.to_le_bytes());
        let departure = Instant::now();
        socket.send(&datagram)?;
        // An echo of an earlier one, that came too late, is passed over. Silence ends the run:
        // nothing on this way may lose a lone datagram.
        while received != datagram {
            socket.recv(&mut received)?;
        }
        times.push(departure.elapsed().as_secs_f64() * 1e6);
    }
    Ok(times)
}
