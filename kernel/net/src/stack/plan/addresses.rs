//! Addresses of interfaces.

use alloc::vec::Vec;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use base::Instant;
use inet::{AddressState, Cidr};
use sync::{Error, Result};

use super::{change, each_link};
use crate::refusal::refused;
use crate::stack::NetStack;
use crate::stack::interface::LOOPBACK;
use crate::stack::interface::{Interface, LOOPBACK_FACTS};
use vfs::socket::InterfaceName;

/// An address of an interface.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Address {
    /// The interface's number.
    pub interface: u32,
    /// And its name.
    pub label: InterfaceName,
    /// The address.
    pub ip: IpAddr,
    /// Bits of its network.
    pub prefix_len: u8,
    /// Where it is in its life.
    pub state: AddressState,
    /// When it is deprecated.
    pub preferred_until: Instant,
    /// When it is gone.
    pub valid_until: Instant,
}

const LOOPBACK_BITS: u8 = 8;

/// An address that stays.
fn lasting(of: &Interface, ip: IpAddr, prefix_len: u8) -> Address {
    Address {
        interface: of.number,
        label: of.name,
        ip,
        prefix_len,
        state: AddressState::Preferred,
        preferred_until: Instant::NEVER,
        valid_until: Instant::NEVER,
    }
}

/// All addresses, by interface.
pub fn addresses(of: &NetStack) -> Vec<Address> {
    let mut all = Vec::from([
        lasting(&LOOPBACK_FACTS, Ipv4Addr::LOCALHOST.into(), LOOPBACK_BITS),
        lasting(&LOOPBACK_FACTS, Ipv6Addr::LOCALHOST.into(), 128),
    ]);
    each_link(of, |of, stack| {
        let own = stack.address();
        all.extend(own.map(|own| lasting(of, own.addr().into(), own.prefix_len())));
        all.extend(stack.addresses_v6().map(|own| Address {
            interface: of.number,
            label: of.name,
            ip: own.addr.into(),
            prefix_len: own.prefix_len,
            state: own.state,
            preferred_until: own.preferred_until,
            valid_until: own.valid_until,
        }));
    });
    all
}

/// The address of everybody on the network of `own`, where there is such an address.
pub fn broadcast(own: &Address) -> Option<Ipv4Addr> {
    let IpAddr::V4(ip) = own.ip else { return None };
    let cidr = Cidr::new(ip, own.prefix_len).filter(|cidr| cidr.prefix_len() < 31)?;
    Some(cidr.broadcast())
}

/// Gives an interface an address.
///
/// Errors: `Exists` if it has it, `NoBuffers` if it can have no more, `Unsupported` for what
/// the stack does not do, `Invalid` for no address of a host.
pub fn add_address(of: &NetStack, interface: u32, ip: IpAddr, prefix_len: u8) -> Result<()> {
    if interface == LOOPBACK {
        return Err(Error::Unsupported);
    }
    match ip {
        IpAddr::V4(ip) => add_address4(of, interface, ip, prefix_len),
        IpAddr::V6(ip) => change(of, interface, |stack, link| {
            stack
                .add_address_v6(link, ip, prefix_len)
                .map_err(|error| match error {
                    inet::Error::AddressInUse => Error::Exists,
                    inet::Error::AddressNotAvailable => Error::Invalid,
                    error => refused(error),
                })
        }),
    }
}

/// A stack has one address of IPv4. One that is set ends DHCP, which would replace it by its own.
fn add_address4(of: &NetStack, interface: u32, ip: Ipv4Addr, prefix_len: u8) -> Result<()> {
    let cidr = Cidr::new(ip, prefix_len).ok_or(Error::Invalid)?;
    if ip.is_unspecified() || ip.is_multicast() || ip.is_loopback() {
        return Err(Error::Invalid);
    }
    change(of, interface, |stack, _| match stack.address() {
        Some(own) if own == cidr => Err(Error::Exists),
        Some(_) => Err(Error::NoBuffers),
        None => {
            stack.stop_dhcp();
            stack.set_address(Some(cidr));
            Ok(())
        }
    })
}

/// Takes an address away. With one of IPv4 goes the router to all other networks if it is
/// no neighbour any more, and DHCP, which would bring it back.
///
/// Errors: `AddressNotAvailable` if the interface does not have it.
pub fn remove_address(of: &NetStack, interface: u32, ip: IpAddr) -> Result<()> {
    if interface == LOOPBACK {
        return Err(Error::AddressNotAvailable);
    }
    change(of, interface, |stack, link| {
        let ip = match ip {
            IpAddr::V4(ip) => ip,
            IpAddr::V6(ip) => return stack.remove_address_v6(link, ip).map_err(refused),
        };
        let own = stack.address().filter(|own| own.addr() == ip);
        let own = own.ok_or(Error::AddressNotAvailable)?;
        let router = stack.gateway().filter(|router| !own.contains(*router));
        stack.stop_dhcp();
        stack.set_gateway(router);
        stack.set_address(None);
        Ok(())
    })
}
