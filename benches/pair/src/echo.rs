//! A guest that echoes datagrams, and the socket to it.

use std::net::{Ipv4Addr, UdpSocket};
use std::time::Duration;

use qemu::namespace;

use crate::{Guest, System, server};

const PORT: u16 = 7;
/// The size of a datagram.
pub const DATAGRAM_BYTES: usize = 64;
/// How long the socket waits for an echo; after so much silence it counts as lost.
pub const SILENCE: Duration = Duration::from_millis(100);

/// The guest and a socket that is connected to it.
pub struct Echo {
    /// The guest.
    pub guest: Guest,
    /// Reads give up after [`SILENCE`].
    pub socket: UdpSocket,
}

impl Echo {
    /// Boots a system with `flags` of `sietch run` and waits for the first echo.
    pub fn boot(system: System, flags: &[&str]) -> Result<Self, String> {
        let server = server("udp_echo")?;
        Self::in_guest(system.boot(&[flags, &[&server]].concat())?)
    }

    /// Waits for the first echo of a guest that runs, or will run, `udp_echo`.
    pub fn in_guest(guest: Guest) -> Result<Self, String> {
        Self::at(guest, namespace::MACHINE)
    }

    /// The same by an address of the guest.
    pub fn at(mut guest: Guest, address: Ipv4Addr) -> Result<Self, String> {
        let socket = connect(address).map_err(|error| format!("udp: {error}"))?;
        let mut datagram = [0; DATAGRAM_BYTES];
        // A machine that is not up refuses at once.
        guest.wait_until("echo", || {
            socket.send(&datagram).is_ok() && socket.recv(&mut datagram).is_ok()
        })?;
        Ok(Self { guest, socket })
    }
}

/// A socket that is connected to the echo of an address. Reads give up after [`SILENCE`].
pub fn connect(address: Ipv4Addr) -> std::io::Result<UdpSocket> {
    let socket = UdpSocket::bind(("0.0.0.0", 0))?;
    socket.connect((address, PORT))?;
    socket.set_read_timeout(Some(SILENCE))?;
    Ok(socket)
}
