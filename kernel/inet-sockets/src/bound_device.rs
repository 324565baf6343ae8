//! The interface to which a socket is bound (SO_BINDTODEVICE, SO_BINDTOIFINDEX).
//!
//! A shard knows packets to ourselves from those of its port. A socket that is bound to an
//! interface is bound to the port in that interface's shards, and hears nothing in the others.

use core::sync::atomic::Ordering;

use cred::Capability;
use sync::{Error, Result};

use super::address::further_scope;
use super::handle::Handle;
use net::stack::NetStack;
use net::stack::egress::device_in;
use vfs::socket::{OptionName, OptionValue, SocketAddress};

/// Reads an option of this kind; `None` for others.
pub(crate) fn get(stack: &NetStack, device: u32, name: OptionName) -> Option<OptionValue> {
    match name {
        OptionName::BindToDevice => {
            let found = stack.interface(device);
            Some(OptionValue::Device(found.map(|found| found.name)))
        }
        OptionName::BindToInterface => Some(OptionValue::Number(device.cast_signed())),
        _ => None,
    }
}

/// The number of the interface that an option names, or 0; `None` for other options.
///
/// Errors: `WrongDevice` for one that we lack, `Invalid` for what cannot be a number.
pub(crate) fn named(stack: &NetStack, name: OptionName, value: OptionValue) -> Option<Result<u32>> {
    match (name, value) {
        (OptionName::BindToDevice, OptionValue::Name(name)) => Some(number_of(stack, &name)),
        (OptionName::BindToInterface, value) => {
            Some(value.number().and_then(|number| checked(stack, number)))
        }
        _ => None,
    }
}

fn number_of(stack: &NetStack, name: &[u8; 16]) -> Result<u32> {
    let name = name.split(|byte| *byte == 0).next().unwrap_or_default();
    if name.is_empty() {
        return Ok(0);
    }
    let found = stack.interface_named(name).ok_or(Error::WrongDevice)?;
    Ok(found.number)
}

fn checked(stack: &NetStack, number: i32) -> Result<u32> {
    let number = u32::try_from(number).map_err(|_| Error::Invalid)?;
    match number == 0 || stack.interface(number).is_some() {
        true => Ok(number),
        false => Err(Error::WrongDevice),
    }
}

/// Who has bound a socket may not bind it anew without the right to send anything anyway.
///
/// Errors: `NotPermitted`.
pub(crate) fn check_right(bound: u32) -> Result<()> {
    match bound {
        0 => Ok(()),
        _ => cred::credentials().get().require(Capability::NetRaw),
    }
}

/// The number of the interface to which a socket of UDP or TCP is bound, or 0.
pub(crate) fn of(handle: &Handle) -> u32 {
    handle.waiter.device.load(Ordering::Relaxed)
}

/// Binds a socket to the interface that a link-local address names with which it is bound or
/// connected, as Linux does.
///
/// Errors: `Invalid` if it is bound to another one.
pub(crate) fn follow_scope(handle: &Handle, address: &SocketAddress) -> Result<()> {
    match (further_scope(address), of(handle)) {
        (0, _) => Ok(()),
        (scope, 0) => set(handle, scope),
        (scope, device) if scope == device => Ok(()),
        _ => Err(Error::Invalid),
    }
}

/// Binds such a socket.
///
/// Errors: `NotPermitted`.
pub(crate) fn bind(handle: &Handle, number: u32) -> Result<()> {
    check_right(of(handle))?;
    set(handle, number)
}

fn set(handle: &Handle, number: u32) -> Result<()> {
    handle.waiter.device.store(number, Ordering::Relaxed);
    handle.with_all(|id, stack, link| {
        let device = device_in(number, link);
        Ok(stack.configure(link, id, |options| options.device = device)?)
    })
}
