//! UDP echo: datagrams per second with one and with many under way.

use std::net::UdpSocket;
use std::thread;
use std::time::{Duration, Instant};

use crate::guest::{Guest, System, build_server};
use crate::table::{Better, Table};

const PORT: u16 = 7;
const DATAGRAM_BYTES: usize = 64;
const MEASURED: Duration = Duration::from_secs(3);
const PATIENCE: Duration = Duration::from_secs(40);
/// After so much silence the datagrams under way count as lost and are sent anew.
const SILENCE: Duration = Duration::from_millis(100);

/// One round.
pub fn measure(system: System, table: &mut Table) -> Result<(), String> {
    let server = build_server("udp_echo")?;
    let _guest = system.boot("512M", &[&server])?;
    let socket = connect().map_err(|error| format!("udp: {error}"))?;
    wait_for_echo(&socket)?;
    for window in [64, 1] {
        let rate = echoes_per_s(&socket, window).map_err(|error| format!("udp: {error}"))?;
        let row = format!("UDP echo, 64 B, window {window}, k/s");
        table.add(&row, Better::More, system, rate / 1000.0);
    }
    Ok(())
}

fn connect() -> std::io::Result<UdpSocket> {
    let socket = UdpSocket::bind(("0.0.0.0", 0))?;
    socket.connect(Guest::address(PORT))?;
    socket.set_read_timeout(Some(SILENCE))?;
    Ok(socket)
}

fn wait_for_echo(socket: &UdpSocket) -> Result<(), String> {
    let deadline = Instant::now() + PATIENCE;
    let mut datagram = [0; DATAGRAM_BYTES];
    while Instant::now() < deadline {
        if socket.send(&datagram).is_ok() && socket.recv(&mut datagram).is_ok() {
            return Ok(());
        }
        // A machine that is not up refuses at once.
        thread::sleep(Duration::from_millis(10));
    }
    Err("the echo server never answered".into())
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
            Err(_) => send_window()?,
        }
    }
    let rate = f64::from(echoes) / start.elapsed().as_secs_f64();
    // What is still under way must not count for the next window.
    while socket.recv(&mut datagram).is_ok() {}
    Ok(rate)
}
