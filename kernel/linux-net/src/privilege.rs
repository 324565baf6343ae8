//! What setsockopt(2) asks of those who set an option (socket(7), capabilities(7)).

use cred::{Capability, Credentials};
use vfs::socket::{OptionName as Name, OptionValue};

use linux_abi::errno::Errno;

/// SO_SNDBUFFORCE and SO_RCVBUFFORCE, which share their names with the plain options.
const FORCES: [u32; 2] = [32, 33];
const SOL_SOCKET: u32 = 1;
/// What anybody may set as SO_PRIORITY.
const PRIORITIES: core::ops::RangeInclusive<i32> = 0..=6;

/// Whether `who` may set the option with this level and number to `value`.
pub fn check(
    who: &Credentials,
    (level, number): (u32, u32),
    name: Name,
    value: &OptionValue,
) -> Result<(), Errno> {
    let value = value.number().unwrap_or(0);
    let is_admin = who.has(Capability::NetAdmin);
    let shapes_packets = is_admin || who.has(Capability::NetRaw);
    let (allowed, otherwise) = match name {
        Name::Mark => (shapes_packets, Errno::EPERM),
        Name::Priority => (PRIORITIES.contains(&value) || shapes_packets, Errno::EPERM),
        Name::Transparent => (value == 0 || shapes_packets, Errno::EPERM),
        Name::BusyPoll => (value <= 0 || is_admin, Errno::EPERM),
        Name::Repair => (is_admin, Errno::EPERM),
        Name::Debug => (value == 0 || is_admin, Errno::EACCES),
        _ if level == SOL_SOCKET && FORCES.contains(&number) => (is_admin, Errno::EPERM),
        _ => (true, Errno::EPERM),
    };
    match allowed {
        true => Ok(()),
        false => Err(otherwise),
    }
}
