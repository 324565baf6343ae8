//! Addresses as programs write them, and as the stack knows them.
//!
//! The stack speaks IPv4. An IPv6 socket reaches IPv4 peers by mapped addresses
//! (RFC 4291, section 2.5.5.2) and listens for them on `[::]` unless it is `V6ONLY`; the
//! IPv6 loopback leads to the IPv4 one. A `V6ONLY` socket may bind to `[::]`, where no
//! IPv4 packet finds it: it stays silent, as on a network without IPv6.

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use inet::Endpoint;

use super::handle::Handle;
use crate::error::{Error, Result};
use crate::socket::{Family, SocketAddress};

/// What a socket of `handle`'s family means by `address`.
pub(super) fn to_endpoint(handle: &Handle, address: &SocketAddress) -> Result<Endpoint> {
    let SocketAddress::Inet(address) = address else {
        return Err(Error::FamilyUnsupported);
    };
    match (handle.family, address.ip()) {
        (Family::Inet, IpAddr::V4(ip)) => Ok(Endpoint::v4(ip, address.port())),
        (Family::Inet6, ip) if handle.is_v6_only() && ip == Ipv6Addr::UNSPECIFIED => {
            Ok(Endpoint::new(ip, address.port()))
        }
        (Family::Inet6, IpAddr::V6(ip)) => {
            let ip = unmap(ip, handle.is_v6_only())?;
            Ok(Endpoint::v4(ip, address.port()))
        }
        (Family::Inet6, IpAddr::V4(ip)) if !handle.is_v6_only() => {
            Ok(Endpoint::v4(ip, address.port()))
        }
        _ => Err(Error::FamilyUnsupported),
    }
}

fn unmap(ip: Ipv6Addr, v6_only: bool) -> Result<Ipv4Addr> {
    if ip == Ipv6Addr::UNSPECIFIED {
        return Ok(Ipv4Addr::UNSPECIFIED);
    }
    if ip == Ipv6Addr::LOCALHOST {
        return Ok(Ipv4Addr::LOCALHOST);
    }
    let mapped = ip.to_ipv4_mapped().filter(|_| !v6_only);
    mapped.ok_or(Error::AddressNotAvailable)
}

/// How a program that holds `handle` sees `endpoint`.
pub(super) fn from_endpoint(handle: &Handle, endpoint: Endpoint) -> SocketAddress {
    let ip = match (handle.family, endpoint.addr) {
        (Family::Inet6, IpAddr::V4(Ipv4Addr::UNSPECIFIED)) => IpAddr::V6(Ipv6Addr::UNSPECIFIED),
        (Family::Inet6, IpAddr::V4(ip)) => IpAddr::V6(ip.to_ipv6_mapped()),
        (_, ip) => ip,
    };
    SocketAddress::Inet(SocketAddr::new(ip, endpoint.port))
}
