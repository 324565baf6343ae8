//! Flags that a program sets on its socket: how it wants to be answered (`SOL_NETLINK`).

use core::sync::atomic::{AtomicU32, Ordering};

use vfs::socket::OptionName;

/// The flags by bit number in [`Flags`].
const FLAGS: [OptionName; 4] = [
    OptionName::NetlinkNoOverruns,
    OptionName::NetlinkCapAck,
    OptionName::NetlinkExtendedAck,
    OptionName::NetlinkStrict,
];

/// Which flags are set.
#[derive(Default)]
pub(crate) struct Flags(AtomicU32);

impl Flags {
    /// The bit of the wish `name`, if it is one.
    pub fn bit(name: OptionName) -> Option<u32> {
        let index = FLAGS.iter().position(|flag| *flag == name)?;
        Some(1 << index)
    }

    /// Whether the program set `name`.
    pub fn has(&self, name: OptionName) -> bool {
        Self::bit(name).is_some_and(|bit| self.0.load(Ordering::Relaxed) & bit != 0)
    }

    /// Sets the wish of a bit, or takes it back.
    pub fn set(&self, bit: u32, on: bool) {
        match on {
            true => self.0.fetch_or(bit, Ordering::Relaxed),
            false => self.0.fetch_and(!bit, Ordering::Relaxed),
        };
    }
}
