//! Addresses as programs write them, and as the stack knows them.
//!
//! A socket of IPv6 reaches IPv4 peers by mapped addresses (RFC 4291, section 2.5.5.2), and
//! listens for them on `[::]`, unless it is `V6ONLY`. A link-local address holds on one link
//! only, so programs name the interface with it (RFC 4007).

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6};

use inet::Endpoint;
use sync::{Error, Result};

use super::bound_device;
use super::handle::Handle;
use net::stack::interface::CARD;
use vfs::socket::{Family, SocketAddress};

/// What a socket of `handle`'s family means by the address of a peer.
///
/// Errors: `FamilyUnsupported`, `NetworkUnreachable` for IPv4 on a `V6ONLY` socket, `Invalid`
/// for a link-local address without an interface, `WrongDevice` for another than ours.
pub(crate) fn to_endpoint(handle: &Handle, address: &SocketAddress) -> Result<Endpoint> {
    let SocketAddress::Inet(address) = address else {
        return Err(Error::FamilyUnsupported);
    };
    let v4 = |ip| Ok(Endpoint::v4(ip, address.port()));
    match (handle.family, address) {
        (Family::Inet, SocketAddr::V4(four)) => v4(*four.ip()),
        (Family::Inet6, SocketAddr::V4(four)) if !handle.is_v6_only()? => v4(*four.ip()),
        (Family::Inet6, SocketAddr::V6(six)) => match six.ip().to_ipv4_mapped() {
            Some(_) if handle.is_v6_only()? => Err(Error::NetworkUnreachable),
            Some(four) => v4(four),
            None => {
                check_scope(handle, six)?;
                Ok(Endpoint::v6(*six.ip(), six.port()))
            }
        },
        _ => Err(Error::FamilyUnsupported),
    }
}

/// What a socket of `handle`'s family means by an address to bind to.
pub(crate) fn to_name(handle: &Handle, address: &SocketAddress) -> Result<Endpoint> {
    match to_endpoint(handle, address) {
        Err(Error::NetworkUnreachable) => Err(Error::Invalid),
        named => named,
    }
}

fn check_scope(handle: &Handle, name: &SocketAddrV6) -> Result<()> {
    let is_ours = |number| number >= CARD && handle.stack.interface(number).is_some();
    match (name.ip().is_unicast_link_local(), name.scope_id()) {
        (false, _) | (true, CARD) => Ok(()),
        (true, 0) if bound_device::of(handle) == 0 => Err(Error::Invalid),
        (true, 0) => Ok(()),
        (true, number) if is_ours(number) => Ok(()),
        (true, _) => Err(Error::WrongDevice),
    }
}

/// The further interface that a link-local address names; 0 for none.
pub(crate) fn further_scope(address: &SocketAddress) -> u32 {
    match address {
        SocketAddress::Inet(SocketAddr::V6(six))
            if six.ip().is_unicast_link_local() && six.scope_id() > CARD =>
        {
            six.scope_id()
        }
        _ => 0,
    }
}

/// How a program that holds `handle` sees an end of its own connection.
pub(crate) fn from_endpoint(handle: &Handle, endpoint: Endpoint) -> SocketAddress {
    let interface = match (bound_device::of(handle), endpoint.addr) {
        (0, IpAddr::V6(ip)) if ip.is_unicast_link_local() => {
            let shard = handle.with(|_, _, link| Ok(link.interface));
            shard.unwrap_or(CARD)
        }
        (device, _) => device,
    };
    heard_from(handle.family, endpoint, interface)
}

/// How a program with a socket of `family` sees an end of what came by `interface`.
pub(crate) fn heard_from(family: Family, endpoint: Endpoint, interface: u32) -> SocketAddress {
    let ip = seen_by(family, endpoint.addr);
    SocketAddress::Inet(match ip {
        IpAddr::V4(_) => SocketAddr::new(ip, endpoint.port),
        IpAddr::V6(ip) => SocketAddrV6::new(ip, endpoint.port, 0, scope_of(ip, interface)).into(),
    })
}

/// How a program with a socket of `family` sees an address.
pub(crate) fn seen_by(family: Family, ip: IpAddr) -> IpAddr {
    match (family, ip) {
        (Family::Inet6, IpAddr::V4(Ipv4Addr::UNSPECIFIED)) => Ipv6Addr::UNSPECIFIED.into(),
        (Family::Inet6, IpAddr::V4(ip)) => ip.to_ipv6_mapped().into(),
        (_, ip) => ip,
    }
}

/// The interface that a program must name with an address of that interface's link.
pub(crate) fn scope_of(ip: Ipv6Addr, interface: u32) -> u32 {
    match ip.is_unicast_link_local() {
        true => interface,
        false => 0,
    }
}
