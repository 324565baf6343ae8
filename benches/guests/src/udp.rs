//! UDP echo: datagrams per second with one and with many under way.

use std::net::UdpSocket;
use std::time::{Duration, Instant};

use bench_pair::echo::{DATAGRAM_BYTES, Echo};
use bench_pair::{Better, System, Table};

const MEASURED: Duration = Duration::from_secs(3);

/// One round.
pub fn measure(system: System, table: &mut Table) -> Result<(), String> {
    let echo = Echo::boot(system, &["-m", "512M"])?;
    for window in [64, 1] {
        let rate = echoes_per_s(&echo.socket, window).map_err(|error| format!("udp: {error}"))?;
        let row = format!("UDP echo, 64 B, window {window}, k/s");
        table.add(&row, Better::More, system, rate / 1000.0);
    }
    Ok(())
}

fn echoes_per_s(socket: &UdpSocket, window: u32) -> std::io::Result<f64> {
    let mut datagram = [0; DATAGRAM_BYTES];
    let send_window = || (0..window).try_for_each(|_| socket.send(&datagram).map(drop));
    send_window()?;
    let start = Instant::now();
    let mut echoes = 0u32;
    let mut received = [0; DATAGRAM_BYTES];
    while start.elapsed() < MEASURED {
        match socket.recv(&mut received) {
            Ok(_) => {
                echoes += 1;
                socket.send(&datagram)?;
            }
            // What was under way counts as lost and is sent anew.
            Err(_) => send_window()?,
        }
    }
    let rate = f64::from(echoes) / start.elapsed().as_secs_f64();
    // What is still under way must not count for the next window.
    while socket.recv(&mut datagram).is_ok() {}
    Ok(rate)
}
