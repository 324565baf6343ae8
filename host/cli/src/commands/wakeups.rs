//! `sietch wakeups`: who wakes the threads of a running machine, live.

use std::path::PathBuf;
use std::time::Duration;

use super::profile::{record, seconds, wish_of};
use crate::failure::Failure;
use crate::flags::WakeupsFlags;
use crate::profile::Format;

/// Runs the command.
pub fn wakeups(flags: &WakeupsFlags) -> Result<u8, Failure> {
    let least = seconds(flags.least / 1000.0);
    let format = Format::Wakeups { least };
    let wish = wish_of(&flags.name, true, PathBuf::from("-"), format)?;
    record(wish, flags.seconds.map_or(Duration::MAX, seconds))
}
