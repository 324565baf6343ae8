//! Options of raw sockets.

use core::sync::atomic::{AtomicBool, AtomicU8, Ordering::Relaxed};

use sync::{Error, Result};

use super::socket::RawSocket;
use crate::bound_device;
use crate::options::is_accepted;
use crate::udp::reports::Reports;
use net::stack::NetStack;
use net::stack::raw_listener::{ICMP, ICMPV6, RawListener};
use vfs::socket::{Family, OptionName, OptionValue};

/// The protocol of who writes IP headers from the start.
const ANY: u8 = 255;

/// What a program has set for the packets that it sends and hears of.
pub(crate) struct RawOptions {
    hops: AtomicU8,
    tos: AtomicU8,
    /// Packets begin with their IP header.
    has_headers: AtomicBool,
    pub reports: Reports,
}

impl RawOptions {
    pub(crate) fn new(stack: &NetStack, listener: &RawListener) -> Self {
        Self {
            hops: AtomicU8::new(default_hops(stack, listener.family)),
            tos: AtomicU8::new(0),
            has_headers: AtomicBool::new(listener.protocol == ANY),
            reports: Reports::default(),
        }
    }

    pub(crate) fn hops(&self) -> u8 {
        self.hops.load(Relaxed)
    }

    pub(crate) fn type_of_service(&self) -> u8 {
        self.tos.load(Relaxed)
    }

    pub(crate) fn has_headers(&self) -> bool {
        self.has_headers.load(Relaxed)
    }

    pub(crate) fn get(&self, of: &RawSocket, name: OptionName) -> Result<OptionValue> {
        let (stack, listener) = (&of.stack, &*of.listener);
        check_family(listener, name)?;
        let number = |byte: u8| Ok(OptionValue::Number(byte.into()));
        if let Some(value) = bound_device::get(stack, listener.device.load(Relaxed), name) {
            return Ok(value);
        }
        match name {
            OptionName::Error => Ok(OptionValue::PendingError(None)),
            OptionName::Listening | OptionName::V6Only => Ok(false.into()),
            OptionName::TimeToLive | OptionName::V6HopLimit => number(self.hops()),
            OptionName::TypeOfService | OptionName::V6TrafficClass => {
                number(self.type_of_service())
            }
            OptionName::HeaderIncluded | OptionName::V6HeaderIncluded => {
                Ok(self.has_headers().into())
            }
            OptionName::V6Checksum => Ok(OptionValue::Number(listener.checksum_at.load(Relaxed))),
            OptionName::IcmpFilter | OptionName::Icmp6Filter => get_types(listener, name),
            name if is_accepted(name) && self.reports.get(name).is_none() => {
                Ok(OptionValue::Number(0))
            }
            name => match self.reports.get(name) {
                Some(is_on) => Ok(is_on.into()),
                None => {
                    let common = listener.hearing.common.get(name);
                    common.ok_or(Error::NoSuchOption)
                }
            },
        }
    }

    pub(crate) fn set(&self, of: &RawSocket, name: OptionName, value: OptionValue) -> Result<()> {
        let (stack, listener) = (&of.stack, &*of.listener);
        check_family(listener, name)?;
        if let Some(number) = bound_device::named(stack, name, value) {
            bound_device::check_right(listener.device.load(Relaxed))?;
            listener.device.store(number?, Relaxed);
            return Ok(());
        }
        match name {
            OptionName::TimeToLive if value.number()? == 0 => return Err(Error::Invalid),
            OptionName::TimeToLive | OptionName::V6HopLimit => {
                let hops = byte_or(value, default_hops(stack, listener.family))?;
                self.hops.store(hops, Relaxed);
            }
            OptionName::TypeOfService | OptionName::V6TrafficClass => {
                self.tos.store(byte_or(value, 0)?, Relaxed);
            }
            OptionName::HeaderIncluded | OptionName::V6HeaderIncluded => {
                self.has_headers.store(value.flag()?, Relaxed);
            }
            OptionName::V6Only => return Err(Error::Invalid),
            OptionName::V6Checksum => return set_checksum(listener, value.number()?),
            OptionName::IcmpFilter | OptionName::Icmp6Filter => {
                return set_types(listener, name, value);
            }
            name if self.reports.get(name).is_some() => {
                self.reports.set(name, value.flag()?);
            }
            name if is_accepted(name) => return value.number().map(drop),
            name => {
                let set = listener.hearing.common.set(name, value);
                return set.unwrap_or(Err(Error::NoSuchOption));
            }
        }
        Ok(())
    }
}

fn default_hops(stack: &NetStack, family: Family) -> u8 {
    match family {
        Family::Inet6 => stack.settings().hop_limit_v6,
        _ => stack.settings().hop_limit,
    }
}

/// Options of one family are none of the other's.
fn check_family(listener: &RawListener, name: OptionName) -> Result<()> {
    let is_v6 = listener.family == Family::Inet6;
    let is_known = is_v6 || !name.is_of_v6();
    is_known.then_some(()).ok_or(Error::NoSuchOption)
}

/// ICMPv6's checksum is where it is; another's lies at an even offset, or nowhere.
fn set_checksum(listener: &RawListener, at: i32) -> Result<()> {
    if listener.protocol == ICMPV6 || at > 0 && at % 2 != 0 {
        return Err(Error::Invalid);
    }
    listener.checksum_at.store(at.max(-1), Relaxed);
    Ok(())
}

/// Whether sockets of this protocol choose messages by this option.
fn check_types(listener: &RawListener, name: OptionName) -> Result<()> {
    let protocol = match name {
        OptionName::IcmpFilter => ICMP,
        _ => ICMPV6,
    };
    let is_known = listener.protocol == protocol;
    is_known.then_some(()).ok_or(Error::Unsupported)
}

fn get_types(listener: &RawListener, name: OptionName) -> Result<OptionValue> {
    check_types(listener, name)?;
    let types = *listener.blocked_types.lock();
    Ok(match name {
        OptionName::IcmpFilter => OptionValue::Number(types[0].cast_signed()),
        _ => OptionValue::Types(types),
    })
}

fn set_types(listener: &RawListener, name: OptionName, value: OptionValue) -> Result<()> {
    check_types(listener, name)?;
    let types = match value {
        OptionValue::Types(types) => types,
        value => [value.number()?.cast_unsigned(), 0, 0, 0, 0, 0, 0, 0],
    };
    *listener.blocked_types.lock() = types;
    Ok(())
}

/// A byte, or -1 for the default.
fn byte_or(value: OptionValue, default: u8) -> Result<u8> {
    match value.number()? {
        -1 => Ok(default),
        number => u8::try_from(number).map_err(|_| Error::Invalid),
    }
}
