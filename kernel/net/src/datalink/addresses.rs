//! Addresses and routes of links' interfaces, as `linkctl` asks for them: in the first stack, where
//! links have their interfaces unless somebody moved them.

use linkctl::{AddressError, AddressOf, RouteOf};
use sync::{Error, Result};
use vfs::socket::InterfaceName;

use crate::stack;
use crate::stack::plan::{self, Route, RouteKind, RouteOrigin};

/// The number of a link's interface.
fn interface_of(link: &str) -> core::result::Result<u32, AddressError> {
    let name = InterfaceName::new(link).ok_or(AddressError::NoInterface)?;
    let found = stack::first().interface_named(name.as_bytes());
    found.map(|of| of.number).ok_or(AddressError::NoInterface)
}

/// Adds an address, or takes it away.
pub(super) fn change_address(
    of: &AddressOf,
    is_new: bool,
) -> core::result::Result<(), AddressError> {
    let (first, interface) = (stack::first(), interface_of(&of.link)?);
    let (ip, bits) = (of.address.addr(), of.address.len());
    told(match is_new {
        true => plan::add_address(first, interface, ip, bits),
        false => plan::remove_address(first, interface, ip),
    })
}

/// Adds a route, or takes it away.
pub(super) fn change_route(of: &RouteOf, is_new: bool) -> core::result::Result<(), AddressError> {
    let first = stack::first();
    let route = Route {
        destination: of.destination.addr(),
        prefix_len: of.destination.len(),
        kind: RouteKind::Unicast,
        origin: RouteOrigin::Set,
        gateway: of.router,
        interface: interface_of(&of.link)?,
        source: None,
        metric: 0,
    };
    told(match is_new {
        true => plan::add_route(first, &route, false),
        false => plan::remove_route(first, &route),
    })
}

fn told(done: Result<()>) -> core::result::Result<(), AddressError> {
    done.map_err(|error| match error {
        Error::Exists => AddressError::Exists,
        Error::AddressNotAvailable | Error::NoSuchProcess => AddressError::NotThere,
        Error::NoBuffers | Error::OutOfMemory => AddressError::NoRoom,
        Error::Invalid => AddressError::BadAddress,
        Error::NetworkUnreachable => AddressError::NoRouter,
        Error::NetworkDown | Error::WrongDevice => AddressError::NoInterface,
        _ => AddressError::Unsupported,
    })
}
