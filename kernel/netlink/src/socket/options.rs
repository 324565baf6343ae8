//! What a program asks of its socket (`SOL_NETLINK`).

use sync::{Error, Result};

use super::NetlinkSocket;
use crate::endpoint::flags::Flags;
use crate::endpoint::{GROUPS_MAX, group_bit};
use vfs::socket::{OptionName, OptionValue};

impl NetlinkSocket {
    pub(super) fn get_option(&self, name: OptionName) -> Result<OptionValue> {
        match name {
            OptionName::NetlinkGroups => Ok(OptionValue::Bits(self.endpoint.groups())),
            OptionName::Listening => Ok(false.into()),
            OptionName::Error => Ok(OptionValue::PendingError(self.endpoint.take_overrun())),
            name if Flags::bit(name).is_some() => Ok(self.endpoint.flags.has(name).into()),
            name => self.endpoint.options.get(name).ok_or(Error::NoSuchOption),
        }
    }

    pub(super) fn change_option(&self, name: OptionName, value: OptionValue) -> Result<()> {
        match name {
            OptionName::NetlinkJoin => self.join(value, |groups, bit| groups | bit),
            OptionName::NetlinkLeave => self.join(value, |groups, bit| groups & !bit),
            name => match Flags::bit(name) {
                Some(bit) => {
                    self.endpoint.flags.set(bit, value.flag()?);
                    Ok(())
                }
                None => self
                    .endpoint
                    .options
                    .set(name, value)
                    .unwrap_or(Err(Error::NoSuchOption)),
            },
        }
    }

    fn join(&self, value: OptionValue, how: fn(u64, u64) -> u64) -> Result<()> {
        let group = u32::try_from(value.number()?).map_err(|_| Error::Invalid)?;
        if !(1..=GROUPS_MAX).contains(&group) {
            return Err(Error::Invalid);
        }
        self.bind_port(0)?;
        self.change_groups(|groups| how(groups, group_bit(group)));
        Ok(())
    }
}
