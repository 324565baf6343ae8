//! Names of sockets: `struct sockaddr_un`, `sockaddr_in`, `sockaddr_in6`, `sockaddr_nl`,
//! `sockaddr_ll`, `sockaddr_xdp`.

use core::net::{Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6};

use base::VirtAddr;
use linux_raw_sys::net::{AF_INET, AF_INET6, AF_NETLINK, AF_PACKET, AF_UNIX, AF_UNSPEC, AF_XDP};
use mm::user;
use sync::{Error, Result};
use vfs::socket::{BindFlags, Family, PacketAddress, SocketAddress, UnixAddress, XdpAddress};

/// Bytes of the longest name that we take: `struct sockaddr_storage`.
const ADDRESS_BYTES_MAX: usize = 128;
/// Bytes of `struct sockaddr_un`, all of its path used.
const UNIX_BYTES_MAX: usize = 110;
/// Bytes of `struct sockaddr_in`.
const INET_BYTES: usize = 16;
/// Bytes of `struct sockaddr_in6` up to its address, and with the scope.
const INET6_BYTES_MIN: usize = 24;
const INET6_BYTES: usize = 28;

/// Reads a name of `len` bytes.
///
/// Errors: `Invalid` for a bad length, `FamilyUnsupported` for a family unknown to us.
pub fn read(at: VirtAddr, len: u32) -> Result<SocketAddress> {
    match len as usize {
        ..=INET6_BYTES => read_into(&mut [0; INET6_BYTES], at, len),
        _ => read_into(&mut [0; ADDRESS_BYTES_MAX], at, len),
    }
}

fn read_into(buffer: &mut [u8], at: VirtAddr, len: u32) -> Result<SocketAddress> {
    let bytes = buffer.get_mut(..len as usize).ok_or(Error::Invalid)?;
    user::copy_in(at, bytes)?;
    let (family, rest) = bytes.split_first_chunk::<2>().ok_or(Error::Invalid)?;
    match u32::from(u16::from_ne_bytes(*family)) {
        AF_UNSPEC => Ok(SocketAddress::Unspecified),
        AF_UNIX => unix(rest),
        AF_INET => inet(rest),
        AF_INET6 => inet6(rest),
        AF_PACKET => packet(rest),
        AF_NETLINK => netlink(rest),
        AF_XDP => xdp(rest),
        _ => Err(Error::FamilyUnsupported),
    }
}

fn unix(path: &[u8]) -> Result<SocketAddress> {
    if path.len() + 2 > UNIX_BYTES_MAX {
        return Err(Error::Invalid);
    }
    let name = match path.split_first() {
        None => UnixAddress::Unnamed,
        Some((0, name)) => UnixAddress::Abstract(name.into()),
        Some(_) => UnixAddress::Path(path.split(|byte| *byte == 0).next().unwrap_or(path).into()),
    };
    Ok(SocketAddress::Unix(name))
}

fn inet(rest: &[u8]) -> Result<SocketAddress> {
    let (port, rest) = rest.split_first_chunk::<2>().ok_or(Error::Invalid)?;
    let (address, rest) = rest.split_first_chunk::<4>().ok_or(Error::Invalid)?;
    if rest.len() < INET_BYTES - 8 {
        return Err(Error::Invalid);
    }
    let name = SocketAddrV4::new(Ipv4Addr::from(*address), u16::from_be_bytes(*port));
    Ok(SocketAddress::Inet(SocketAddr::V4(name)))
}

fn inet6(rest: &[u8]) -> Result<SocketAddress> {
    if rest.len() + 2 < INET6_BYTES_MIN {
        return Err(Error::Invalid);
    }
    let (port, rest) = rest.split_first_chunk::<2>().ok_or(Error::Invalid)?;
    let (flow, rest) = rest.split_first_chunk::<4>().ok_or(Error::Invalid)?;
    let (address, rest) = rest.split_first_chunk::<16>().ok_or(Error::Invalid)?;
    let scope = rest
        .first_chunk::<4>()
        .map_or(0, |scope| u32::from_ne_bytes(*scope));
    let name = SocketAddrV6::new(
        Ipv6Addr::from(*address),
        u16::from_be_bytes(*port),
        u32::from_be_bytes(*flow),
        scope,
    );
    Ok(SocketAddress::Inet(SocketAddr::V6(name)))
}

/// A link address may be cut short, as `sll_halen` says.
fn packet(rest: &[u8]) -> Result<SocketAddress> {
    let (protocol, rest) = rest.split_first_chunk::<2>().ok_or(Error::Invalid)?;
    let (interface, rest) = rest.split_first_chunk::<4>().ok_or(Error::Invalid)?;
    let (facts, rest) = rest.split_first_chunk::<4>().ok_or(Error::Invalid)?;
    let [low, high, packet_type, station_len] = *facts;
    let mut station = [0; 8];
    for (to, from) in station.iter_mut().zip(rest) {
        *to = *from;
    }
    Ok(SocketAddress::Packet(PacketAddress {
        interface: u32::from_ne_bytes(*interface),
        protocol: u16::from_be_bytes(*protocol),
        hardware_type: u16::from_ne_bytes([low, high]),
        packet_type,
        station_len,
        station,
    }))
}

/// `pad[2] port[4] groups[4]` of `struct sockaddr_nl`.
fn netlink(rest: &[u8]) -> Result<SocketAddress> {
    let (_, rest) = rest.split_first_chunk::<2>().ok_or(Error::Invalid)?;
    let (port, rest) = rest.split_first_chunk::<4>().ok_or(Error::Invalid)?;
    let groups = rest.first_chunk::<4>().ok_or(Error::Invalid)?;
    Ok(SocketAddress::Netlink {
        port: u32::from_ne_bytes(*port),
        groups: u32::from_ne_bytes(*groups),
    })
}

/// `flags[2] interface[4] queue[4] descriptor[4]` of `struct sockaddr_xdp`; a descriptor would be that
/// of a socket whose memory is shared.
fn xdp(rest: &[u8]) -> Result<SocketAddress> {
    let (flags, rest) = rest.split_first_chunk::<2>().ok_or(Error::Invalid)?;
    let (interface, rest) = rest.split_first_chunk::<4>().ok_or(Error::Invalid)?;
    let (queue, rest) = rest.split_first_chunk::<4>().ok_or(Error::Invalid)?;
    rest.first_chunk::<4>().ok_or(Error::Invalid)?;
    Ok(SocketAddress::Xdp(XdpAddress {
        flags: BindFlags::from_bits(u16::from_ne_bytes(*flags)).ok_or(Error::Invalid)?,
        interface: u32::from_ne_bytes(*interface),
        queue: u32::from_ne_bytes(*queue),
    }))
}

/// Bytes of `struct sockaddr_nl` and `struct sockaddr_ll`.
const NETLINK_BYTES: usize = 12;
const PACKET_BYTES: usize = 20;

/// A name as bytes, of which there are `N`.
struct Encoded<const N: usize> {
    bytes: [u8; N],
    len: usize,
}

impl<const N: usize> Encoded<N> {
    fn of(family: u32) -> Self {
        let mut out = Self {
            bytes: [0; N],
            len: 0,
        };
        out.push(&(family as u16).to_ne_bytes());
        out
    }

    fn push(&mut self, bytes: &[u8]) {
        if let Some(place) = self.bytes.get_mut(self.len..self.len + bytes.len()) {
            place.copy_from_slice(bytes);
            self.len += bytes.len();
        }
    }
}

/// A `struct sockaddr_in`, the rest of which are zeros.
pub fn encode_inet(name: &SocketAddrV4) -> [u8; INET_BYTES] {
    let mut out = Encoded::of(AF_INET);
    out.push(&name.port().to_be_bytes());
    out.push(&name.ip().octets());
    out.bytes
}

/// A `struct sockaddr_in6`.
pub fn encode_inet6(name: &SocketAddrV6) -> [u8; INET6_BYTES] {
    let mut out = Encoded::of(AF_INET6);
    out.push(&name.port().to_be_bytes());
    out.push(&name.flowinfo().to_be_bytes());
    out.push(&name.ip().octets());
    out.push(&name.scope_id().to_ne_bytes());
    out.bytes
}

fn encode_netlink(port: u32, groups: u32) -> [u8; NETLINK_BYTES] {
    let mut out = Encoded::of(AF_NETLINK);
    out.push(&[0; 2]);
    out.push(&port.to_ne_bytes());
    out.push(&groups.to_ne_bytes());
    out.bytes
}

fn encode_packet(name: &PacketAddress) -> [u8; PACKET_BYTES] {
    let mut out = Encoded::of(AF_PACKET);
    out.push(&name.protocol.to_be_bytes());
    out.push(&name.interface.to_ne_bytes());
    out.push(&name.hardware_type.to_ne_bytes());
    out.push(&[name.packet_type, name.station_len]);
    out.push(&name.station);
    out.bytes
}

fn encode_unix(name: &UnixAddress) -> Encoded<ADDRESS_BYTES_MAX> {
    let mut out = Encoded::of(AF_UNIX);
    match name {
        UnixAddress::Unnamed => {}
        UnixAddress::Path(path) => {
            out.push(path);
            out.push(&[0]);
        }
        UnixAddress::Abstract(name) => {
            out.push(&[0]);
            out.push(name);
        }
    }
    out
}

/// Stores a name at `to`, as far as `room` bytes reach; returns its whole length.
pub fn write(to: VirtAddr, room: u32, name: &SocketAddress) -> Result<u32> {
    let store = |bytes: &[u8]| {
        let shown = bytes.len().min(room as usize);
        user::copy_out(bytes.get(..shown).unwrap_or_default(), to)?;
        Ok(bytes.len() as u32)
    };
    match name {
        SocketAddress::Unspecified => store(&(AF_UNSPEC as u16).to_ne_bytes()),
        SocketAddress::Inet(SocketAddr::V4(name)) => store(&encode_inet(name)),
        SocketAddress::Inet(SocketAddr::V6(name)) => store(&encode_inet6(name)),
        SocketAddress::Netlink { port, groups } => store(&encode_netlink(*port, *groups)),
        SocketAddress::Packet(name) => store(&encode_packet(name)),
        // Such a socket tells no name.
        SocketAddress::Xdp(_) => store(&[]),
        SocketAddress::Unix(name) => {
            let out = encode_unix(name);
            store(out.bytes.get(..out.len).unwrap_or_default())
        }
    }
}

/// Stores a name at `to`, if that is given, where `len_at` holds the room and gets the
/// whole length.
pub fn write_with_len(
    to: Option<VirtAddr>,
    len_at: VirtAddr,
    name: Option<&SocketAddress>,
) -> Result<()> {
    let Some(to) = to else { return Ok(()) };
    let room: i32 = user::read(len_at)?;
    let room = u32::try_from(room).map_err(|_| Error::Invalid)?;
    let len = match name {
        Some(name) => write(to, room, name)?,
        None => 0,
    };
    user::write(len_at, len)
}

/// The family of Linux's number.
pub fn family(number: u32) -> Result<Family> {
    match number {
        AF_UNIX => Ok(Family::Unix),
        AF_INET => Ok(Family::Inet),
        AF_INET6 => Ok(Family::Inet6),
        AF_PACKET => Ok(Family::Packet),
        AF_NETLINK => Ok(Family::Netlink),
        AF_XDP => Ok(Family::Xdp),
        _ => Err(Error::FamilyUnsupported),
    }
}

/// Linux's number of a family.
pub fn family_number(family: Family) -> u32 {
    match family {
        Family::Unix => AF_UNIX,
        Family::Inet => AF_INET,
        Family::Inet6 => AF_INET6,
        Family::Packet => AF_PACKET,
        Family::Netlink => AF_NETLINK,
        Family::Xdp => AF_XDP,
    }
}
