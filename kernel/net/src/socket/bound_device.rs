//! The interface to which a socket is bound (SO_BINDTODEVICE, SO_BINDTOIFINDEX).
//!
//! A stack knows packets to ourselves from those of its port, and that is what a socket can be
//! bound to: loopback or the card. VNICs have stacks of their own, in which programs have no
//! sockets of UDP and TCP.

use cred::Capability;
use inet::Device;
use sync::{Error, Result};

use super::handle::Handle;
use crate::stack::NetStack;
use crate::stack::interface::{CARD, LOOPBACK};
use vfs::socket::{OptionName, OptionValue};

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
pub(crate) fn of(handle: &Handle) -> Result<u32> {
    Ok(match handle.options()?.device {
        Device::Any => 0,
        Device::Loopback => LOOPBACK,
        Device::Port => CARD,
        Device::Other(number) => number,
    })
}

/// Binds such a socket.
///
/// Errors: `NotPermitted`; `WrongDevice` for an interface that has a stack of its own.
pub(crate) fn bind(handle: &Handle, number: u32) -> Result<()> {
    check_right(of(handle)?)?;
    let device = match number {
        0 => Device::Any,
        LOOPBACK => Device::Loopback,
        CARD => Device::Port,
        _ => return Err(Error::WrongDevice),
    };
    handle.configure(|options| options.device = device)
}
