//! What the system says of a network interface (netdevice(7)).

use std::io;
use std::os::fd::AsFd;

use rustix::ioctl::{self, Opcode, Updater};
use rustix::net::netdevice::name_to_index;
use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};

const SIOCGIFMTU: Opcode = 0x8921;
const SIOCGIFHWADDR: Opcode = 0x8927;
const NAME_BYTES: usize = 16;
const VALUE_BYTES: usize = 24;

/// `struct ifreq`.
#[repr(C)]
struct Request {
    name: [u8; NAME_BYTES],
    value: [u8; VALUE_BYTES],
}

/// An interface.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Interface {
    /// Its number.
    pub index: u32,
    /// Its station.
    pub mac: [u8; 6],
    /// Bytes of the largest packet.
    pub mtu: u32,
}

impl Interface {
    /// The interface of this name.
    ///
    /// Errors: `InvalidInput` for what is no name; those of the system, if there is none.
    pub fn find(name: &str) -> io::Result<Self> {
        if name.is_empty() || name.len() >= NAME_BYTES {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let socket = socket_with(
            AddressFamily::INET,
            SocketType::DGRAM,
            SocketFlags::CLOEXEC,
            None,
        )?;
        let index = name_to_index(&socket, name)?;
        let [
            _,
            _,
            mac @ ..,
            _,
            _,
            _,
            _,
            _,
            _,
            _,
            _,
            _,
            _,
            _,
            _,
            _,
            _,
            _,
            _,
        ] = ask::<SIOCGIFHWADDR>(&socket, name)?;
        let [a, b, c, d, ..] = ask::<SIOCGIFMTU>(&socket, name)?;
        let mtu = u32::from_ne_bytes([a, b, c, d]);
        Ok(Self { index, mac, mtu })
    }
}

fn ask<const WHAT: Opcode>(socket: impl AsFd, name: &str) -> io::Result<[u8; VALUE_BYTES]> {
    let mut request = Request {
        name: [0; NAME_BYTES],
        value: [0; VALUE_BYTES],
    };
    for (to, from) in request.name.iter_mut().zip(name.bytes()) {
        *to = from;
    }
    // SAFETY: both requests take an `ifreq` and write within it; any bytes are a value of its.
    unsafe { ioctl::ioctl(socket, Updater::<WHAT, Request>::new(&mut request)) }?;
    Ok(request.value)
}
