//! Multicast groups of datagram sockets, and what else concerns interfaces.
//!
//! A socket joins a group on one interface, by its member in that one's shard, which it gets now
//! if it has none. All packets to groups that come by the card come to the first shard (`steer`),
//! so of the card's shards only that one's member, at the socket's location, joins.

use core::net::Ipv4Addr;
use core::sync::atomic::Ordering::Relaxed;

use inet::{SocketId, Stack};
use sync::{Error, Result};

use super::bound_device;
use super::handle::Handle;
use net::after_send;
use net::stack::NetStack;
use net::stack::env::Link;
use net::stack::interface::LOOPBACK;
use vfs::socket::{GroupMembership, OptionName, OptionValue};

type Outcome = core::result::Result<(), inet::Error>;

/// Reads an option of this kind; `None` for others.
pub(crate) fn get(handle: &Handle, name: OptionName) -> Option<Result<OptionValue>> {
    match name {
        OptionName::MulticastInterface => {
            let named = handle.waiter.group_source.load(Relaxed);
            Some(Ok(OptionValue::Address(Ipv4Addr::from_bits(named))))
        }
        OptionName::V6MulticastInterface => {
            Some(Ok(OptionValue::Number(sends_by(handle).cast_signed())))
        }
        OptionName::Mtu | OptionName::V6Mtu => Some(path_mtu(handle)),
        _ => None,
    }
}

/// The largest packet to the peer, as far as is known.
fn path_mtu(handle: &Handle) -> Result<OptionValue> {
    let peer = handle.remote()?;
    let stack = &handle.stack;
    let from = handle.local()?.addr;
    let within = stack.loopback_exit(Some(from), peer);
    let exit = || stack.exit(bound_device::of(handle), Some(from), peer.addr);
    let shard = within.unwrap_or_else(exit);
    let member = handle.member(shard);
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
            let join =
                |stack: &mut Stack, link: &mut Link, id| stack.join_group(link, id, of.group);
            check(name, &of).and_then(|()| at_member(handle, &of, join))
        }
        (OptionName::LeaveGroup | OptionName::V6LeaveGroup, OptionValue::Group(of)) => {
            let leave =
                |stack: &mut Stack, link: &mut Link, id| stack.leave_group(link, id, of.group);
            check(name, &of).and_then(|()| at_member(handle, &of, leave))
        }
        (OptionName::MulticastInterface, OptionValue::Group(of)) => {
            let named = interface_named(&handle.stack, &of);
            named.map(|number| send_by(handle, number, of.local))
        }
        (OptionName::V6MulticastInterface, OptionValue::Number(number)) => {
            let number = number.cast_unsigned();
            let checked = check_number(&handle.stack, number);
            checked.map(|()| send_by(handle, number, Ipv4Addr::UNSPECIFIED))
        }
        _ => return None,
    })
}

fn check(name: OptionName, of: &GroupMembership) -> Result<()> {
    match of.group.is_multicast() && of.group.is_ipv6() == name.is_of_v6() {
        true => Ok(()),
        false => Err(Error::Invalid),
    }
}

/// The interface by which a socket sends to groups, or 0.
pub(crate) fn sends_by(handle: &Handle) -> u32 {
    handle.waiter.group_device.load(Relaxed)
}

fn send_by(handle: &Handle, number: u32, source: Ipv4Addr) {
    handle.waiter.group_device.store(number, Relaxed);
    let named = &handle.waiter.group_source;
    named.store(source.to_bits(), Relaxed);
}

/// The interface that a program names by its number or its address; 0 if it names none.
fn interface_named(stack: &NetStack, of: &GroupMembership) -> Result<u32> {
    check_number(stack, of.interface)?;
    if of.interface != 0 || of.local.is_unspecified() {
        return Ok(of.interface);
    }
    if of.local.is_loopback() {
        return Ok(LOOPBACK);
    }
    let mut all = stack.interfaces().into_iter();
    let has_it = |own: inet::Cidr| own.addr() == of.local;
    let found = all.find(|interface| stack.address(interface).is_some_and(has_it));
    found.map(|found| found.number).ok_or(Error::WrongDevice)
}

/// The shard in which a socket joins a group: of the interface that is named, else by the route.
fn shard_of_group(handle: &Handle, of: &GroupMembership) -> Result<u16> {
    let named = interface_named(&handle.stack, of)?;
    let further = handle.stack.further_exit(named, None, of.group);
    Ok(further.unwrap_or(0))
}

pub(crate) fn check_number(stack: &NetStack, interface: u32) -> Result<()> {
    match interface {
        0 | LOOPBACK => Ok(()),
        number if stack.interface(number).is_some() => Ok(()),
        _ => Err(Error::WrongDevice),
    }
}

/// Calls `work` with the member that joins and leaves a group.
fn at_member(
    handle: &Handle,
    of: &GroupMembership,
    work: impl FnOnce(&mut Stack, &mut Link, SocketId) -> Outcome,
) -> Result<()> {
    let member = handle.member_made(shard_of_group(handle, of)?)?;
    handle.stack.in_shard(member.shard, |stack, link| {
        work(stack, link, member.id)?;
        after_send(link);
        Ok(())
    })
}
