//! Multicast groups of datagram sockets, and what else concerns interfaces.
//!
//! All packets to groups come to the first shard (`steer`), so only a socket's member there,
//! at its location, joins.

use core::net::{IpAddr, Ipv4Addr};

use sync::{Error, Result};

use super::handle::Handle;
use crate::device::poll::after_send;
use crate::stack::NetStack;
use crate::stack::interface::{CARD, LOOPBACK};
use vfs::socket::{GroupMembership, OptionName, OptionValue};

/// Reads an option of this kind; `None` for others.
pub(crate) fn get(handle: &Handle, name: OptionName) -> Option<Result<OptionValue>> {
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
    let stack = &handle.stack;
    let member = handle.member(stack.shard_of(peer.addr));
    let mtu = stack.in_shard(member.shard, |stack, _| Ok(stack.path_mtu(peer.addr)))?;
    Ok(OptionValue::Number(mtu.cast_signed()))
}

/// Sets an option of this kind; `None` for others.
///
/// Errors: `Invalid` for what is no group of that family, `AddressInUse` for a member,
/// `AddressNotAvailable` to leave where one is no member, `WrongDevice` for an interface
/// that we lack, `NoBuffers` at a limit.
pub(crate) fn set(handle: &Handle, name: OptionName, value: OptionValue) -> Option<Result<()>> {
    Some(match (name, value) {
        (OptionName::JoinGroup | OptionName::V6JoinGroup, OptionValue::Group(of)) => {
            check(handle, name, &of).and_then(|()| join(handle, of.group))
        }
        (OptionName::LeaveGroup | OptionName::V6LeaveGroup, OptionValue::Group(of)) => {
            check(handle, name, &of).and_then(|()| leave(handle, of.group))
        }
        (OptionName::MulticastInterface, OptionValue::Group(of)) => {
            check_interface(&handle.stack, &of)
        }
        (OptionName::V6MulticastInterface, OptionValue::Number(number)) => {
            check_number(&handle.stack, number as u32)
        }
        _ => return None,
    })
}

fn check(handle: &Handle, name: OptionName, of: &GroupMembership) -> Result<()> {
    if !of.group.is_multicast() || of.group.is_ipv6() != name.is_of_v6() {
        return Err(Error::Invalid);
    }
    check_interface(&handle.stack, of)
}

/// One card hears all groups, so the interface only has to be ours.
fn check_interface(stack: &NetStack, of: &GroupMembership) -> Result<()> {
    check_number(stack, of.interface)?;
    let own = stack.with_first_shard(inet::Stack::address).flatten();
    let is_own = own.is_some_and(|own| own.addr() == of.local);
    let is_ours = of.local.is_unspecified() || of.local.is_loopback() || is_own;
    match is_ours {
        true => Ok(()),
        false => Err(Error::WrongDevice),
    }
}

pub(crate) fn check_number(stack: &NetStack, interface: u32) -> Result<()> {
    match interface {
        0 | LOOPBACK => Ok(()),
        CARD if stack.interface(CARD).is_some() => Ok(()),
        _ => Err(Error::WrongDevice),
    }
}

fn join(handle: &Handle, group: IpAddr) -> Result<()> {
    handle.with(|id, stack, link| {
        stack.join_group(link, id, group)?;
        after_send(link);
        Ok(())
    })
}

fn leave(handle: &Handle, group: IpAddr) -> Result<()> {
    handle.with(|id, stack, link| {
        stack.leave_group(link, id, group)?;
        after_send(link);
        Ok(())
    })
}
