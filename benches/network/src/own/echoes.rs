//! Rates of echoes of datagrams: by sockets, by native calls, and without a stack.

use std::net::{Ipv4Addr, UdpSocket};
use std::time::{Duration, Instant};

use bench_pair::echo::{self, DATAGRAM_BYTES, Echo};
use bench_pair::{Guest, example};

use super::network::{Network, refs};
use super::servers::{self, SECONDS, WARM_UP_DIVISOR};
use super::table::Table;

/// By sockets.
pub fn sockets(network: Network, divisor: u32, table: &mut Table) -> Result<(), String> {
    let guest = network.boot(&servers::program("udp_echo")?)?;
    echo_of(
        "UDP echo",
        Echo::at(guest, network.address())?,
        (network, divisor, table),
    )
}

/// Of programs that make native calls, where the network is theirs; elsewhere sockets are what there is.
pub fn natives(network: Network, divisor: u32, table: &mut Table) -> Result<(), String> {
    for native in Native::ALL {
        if let Some(args) = network.args_native(&native.program()?)? {
            let guest = network.system().boot(&refs(&args))?;
            echo_of(
                native.name(),
                Echo::at(guest, network.address())?,
                (network, divisor, table),
            )?;
        }
    }
    Ok(())
}

/// A program that makes native calls (`user/libos/examples`).
#[derive(Clone, Copy)]
pub enum Native {
    /// An echo over a stack of the program's own.
    Stack,
    /// The same frames without a stack: what the link itself costs.
    Frames,
}

impl Native {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Stack, Self::Frames];

    /// Its name in the table.
    pub fn name(self) -> &'static str {
        match self {
            Self::Stack => "UDP echo by native calls",
            Self::Frames => "the same frames sent back, no stack",
        }
    }

    /// Builds it; its path.
    pub fn program(self) -> Result<String, String> {
        example(
            "sietch-io",
            if let Self::Stack = self {
                "udp_echo"
            } else {
                "frame_echo"
            },
        )
    }
}

/// Waits for the first echo.
pub fn wait_for_echo(guest: &mut Guest, host: Ipv4Addr) -> Result<(), String> {
    let socket = echo::connect(host).map_err(text)?;
    let mut datagram = [0; DATAGRAM_BYTES];
    let is_echoed = || socket.send(&datagram).is_ok() && socket.recv(&mut datagram).is_ok();
    guest.wait_until("echo", is_echoed).map(drop)
}

fn echo_of(
    name: &str,
    echo: Echo,
    (network, divisor, table): (Network, u32, &mut Table),
) -> Result<(), String> {
    for window in [64, 1] {
        let time = Duration::from_secs(SECONDS.div_ceil(divisor).into());
        echoes(&echo.socket, window, time / WARM_UP_DIVISOR).map_err(text)?;
        let ask = || Ok((echoes(&echo.socket, window, time).map_err(text)?, None));
        let figures = servers::measured(&echo.guest, ask)?;
        servers::add(table, &format!("{name}, window {window}"), network, figures);
    }
    Ok(())
}

/// How many came back. What silence ends is lost, and sent anew.
pub fn echoes(socket: &UdpSocket, window: u32, time: Duration) -> std::io::Result<f64> {
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

fn text(error: std::io::Error) -> String {
    error.to_string()
}
