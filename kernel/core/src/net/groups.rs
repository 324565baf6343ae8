//! Multicast groups of datagram sockets, and what else concerns interfaces.

use core::net::{IpAddr, Ipv4Addr};

use super::handle::{Handle, stack};
use super::interface::{CARD, LOOPBACK};
use super::poll::after_send;
use crate::error::{Error, Result};
use crate::socket::{GroupMembership, OptionName, OptionValue};

/// Reads an option of this kind; `None` for others.
pub(super) fn get(handle: &Handle, name: OptionName) -> Option<Result<OptionValue>> {
    match name {
        OptionName::MulticastInterface => Some(Ok(OptionValue::Address(Ipv4Addr::UNSPECIFIED))),
        OptionName::V6MulticastInterface => Some(Ok(OptionValue::Number(0))),
        OptionName::Mtu | OptionName::V6Mtu => Some(path_mtu(handle)),
        _ => None,
    }
}

/// The largest packet to the peer, as far as is known.
fn path_mtu(handle: &Handle) -> Result<OptionValue> {
    let peer = handle.remote()?;
    let mtu = stack(|stack, _| Ok(stack.path_mtu(peer.addr)))?;
    Ok(OptionValue::Number(mtu.into()))
}

/// Sets an option of this kind; `None` for others.
///
/// Errors: `Invalid` for what is no group of that family, `AddressInUse` for a member,
/// `AddressNotAvailable` to leave where one is no member, `WrongDevice` for an interface
/// that we lack, `NoBuffers` at a limit.
pub(super) fn set(handle: &Handle, name: OptionName, value: OptionValue) -> Option<Result<()>> {
    Some(match (name, value) {
        (OptionName::JoinGroup | OptionName::V6JoinGroup, OptionValue::Group(of)) => {
            check(name, &of).and_then(|()| join(handle, of.group))
        }
        (OptionName::LeaveGroup | OptionName::V6LeaveGroup, OptionValue::Group(of)) => {
            check(name, &of).and_then(|()| leave(handle, of.group))
        }
        (OptionName::MulticastInterface, OptionValue::Group(of)) => check_interface(&of),
        (OptionName::V6MulticastInterface, OptionValue::Number(number)) => {
            check_number(number as u32)
        }
        _ => return None,
    })
}

fn check(name: OptionName, of: &GroupMembership) -> Result<()> {
    if !of.group.is_multicast() || of.group.is_ipv6() != name.is_of_v6() {
        return Err(Error::Invalid);
    }
    check_interface(of)
}

/// One card hears all groups, so the interface only has to be ours.
fn check_interface(of: &GroupMembership) -> Result<()> {
    check_number(of.interface)?;
    let own = stack(|stack, _| Ok(stack.address()))?.map(|own| own.addr());
    let is_ours = of.local.is_unspecified() || of.local.is_loopback() || own == Some(of.local);
    match is_ours {
        true => Ok(()),
        false => Err(Error::WrongDevice),
    }
}

pub(super) fn check_number(interface: u32) -> Result<()> {
    match interface {
        0 | LOOPBACK | CARD => Ok(()),
        _ => Err(Error::WrongDevice),
    }
}

fn join(handle: &Handle, group: IpAddr) -> Result<()> {
    stack(|stack, link| {
        stack.join_group(link, handle.id, group)?;
        after_send(link);
        Ok(())
    })
}

fn leave(handle: &Handle, group: IpAddr) -> Result<()> {
    stack(|stack, link| {
        stack.leave_group(link, handle.id, group)?;
        after_send(link);
        Ok(())
    })
}
