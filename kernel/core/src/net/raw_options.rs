//! Options of raw sockets.

use core::sync::atomic::{AtomicU8, Ordering::Relaxed};

use super::options::is_accepted;
use super::raw::RawListener;
use crate::error::{Error, Result};
use crate::socket::{OptionName, OptionValue};

/// What a program has set for the packets that it sends.
pub(super) struct RawOptions {
    ttl: AtomicU8,
    tos: AtomicU8,
}

impl RawOptions {
    pub(super) fn new() -> Self {
        Self {
            ttl: AtomicU8::new(super::settings().hop_limit),
            tos: AtomicU8::new(0),
        }
    }

    pub(super) fn ttl(&self) -> u8 {
        self.ttl.load(Relaxed)
    }

    pub(super) fn type_of_service(&self) -> u8 {
        self.tos.load(Relaxed)
    }

    pub(super) fn get(&self, listener: &RawListener, name: OptionName) -> Result<OptionValue> {
        match name {
            OptionName::Error => Ok(OptionValue::PendingError(None)),
            OptionName::Listening => Ok(false.into()),
            OptionName::TimeToLive => Ok(OptionValue::Number(self.ttl().into())),
            OptionName::TypeOfService => Ok(OptionValue::Number(self.type_of_service().into())),
            OptionName::IcmpFilter => {
                let blocked = listener.blocked_types.load(Relaxed);
                Ok(OptionValue::Number(blocked.cast_signed()))
            }
            name if is_accepted(name) => Ok(OptionValue::Number(0)),
            name => {
                let common = listener.hearing.common.get(name);
                common.ok_or(Error::NoSuchOption)
            }
        }
    }

    pub(super) fn set(
        &self,
        listener: &RawListener,
        name: OptionName,
        value: OptionValue,
    ) -> Result<()> {
        match name {
            OptionName::TimeToLive => match byte(value)? {
                0 => Err(Error::Invalid),
                ttl => {
                    self.ttl.store(ttl, Relaxed);
                    Ok(())
                }
            },
            OptionName::TypeOfService => {
                self.tos.store(byte(value)?, Relaxed);
                Ok(())
            }
            OptionName::IcmpFilter => {
                let blocked = value.number()?.cast_unsigned();
                listener.blocked_types.store(blocked, Relaxed);
                Ok(())
            }
            name if is_accepted(name) => value.number().map(drop),
            name => {
                let set = listener.hearing.common.set(name, value);
                set.unwrap_or(Err(Error::NoSuchOption))
            }
        }
    }
}

fn byte(value: OptionValue) -> Result<u8> {
    u8::try_from(value.number()?).map_err(|_| Error::Invalid)
}
