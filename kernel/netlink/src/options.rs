//! What a program wishes of its socket (`SOL_NETLINK`).

use core::sync::atomic::{AtomicU32, Ordering};

use sync::{Error, Result};

use super::NetlinkSocket;
use super::socket::{GROUPS_MAX, group_bit};
use vfs::socket::{OptionName, OptionValue};

/// The wishes by bit number in [`Wishes`].
const FLAGS: [OptionName; 4] = [
    OptionName::NetlinkNoOverruns,
    OptionName::NetlinkCapAck,
    OptionName::NetlinkExtendedAck,
    OptionName::NetlinkStrict,
];

/// Which wishes are set.
#[derive(Default)]
pub(super) struct Wishes(AtomicU32);

impl Wishes {
    fn bit(name: OptionName) -> Option<u32> {
        let index = FLAGS.iter().position(|flag| *flag == name)?;
        Some(1 << index)
    }

    /// Whether the program wishes `name`.
    pub fn has(&self, name: OptionName) -> bool {
        Self::bit(name).is_some_and(|bit| self.0.load(Ordering::Relaxed) & bit != 0)
    }

    fn set(&self, bit: u32, on: bool) {
        match on {
            true => self.0.fetch_or(bit, Ordering::Relaxed),
            false => self.0.fetch_and(!bit, Ordering::Relaxed),
        };
    }
}

impl NetlinkSocket {
    pub(super) fn get_option(&self, name: OptionName) -> Result<OptionValue> {
        match name {
            OptionName::NetlinkGroups => Ok(OptionValue::Bits(self.groups())),
            OptionName::Listening => Ok(false.into()),
            OptionName::Error => Ok(OptionValue::PendingError(self.take_overrun())),
            name if Wishes::bit(name).is_some() => Ok(self.wishes.has(name).into()),
            name => self.options.get(name).ok_or(Error::NoSuchOption),
        }
    }

    pub(super) fn change_option(&self, name: OptionName, value: OptionValue) -> Result<()> {
        match name {
            OptionName::NetlinkJoin => self.join(value, |groups, bit| groups | bit),
            OptionName::NetlinkLeave => self.join(value, |groups, bit| groups & !bit),
            name => match Wishes::bit(name) {
                Some(bit) => {
                    self.wishes.set(bit, value.flag()?);
                    Ok(())
                }
                None => self
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

    /// That something was lost, for a program that wants to hear of it.
    pub(super) fn take_overrun(&self) -> Option<Error> {
        let has_overrun = self.queue.lock().take_overrun();
        let is_wanted = !self.wishes.has(OptionName::NetlinkNoOverruns);
        (has_overrun && is_wanted).then_some(Error::NoBuffers)
    }
}
