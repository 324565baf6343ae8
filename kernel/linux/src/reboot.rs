//! Ending the machine by a call: reboot(2).
//!
//! What programs wrote is brought to volumes and to the host first, as when process 1 ends.

use cred::Capability;
use linux_raw_sys::general::*;
use mm::user;

use crate::death;
use linux_abi::call::{Arg, Call, Entry, Outcome};
use linux_abi::errno::Errno;

/// The call of this family.
pub const CALLS: &[Entry] = &[Entry {
    number: __NR_reboot,
    name: "reboot",
    args: &[Arg::Flags, Arg::Flags, Arg::Flags, Arg::Address],
    handler: reboot,
}];

/// The second number has four values: birthdays of the authors' daughters.
const MAGIC2: [u32; 4] = [
    LINUX_REBOOT_MAGIC2,
    LINUX_REBOOT_MAGIC2A,
    LINUX_REBOOT_MAGIC2B,
    LINUX_REBOOT_MAGIC2C,
];
/// Bytes of the argument of RESTART2 that are read.
const ARGUMENT_BYTES_MAX: usize = 255;

fn reboot(call: Call<'_>) -> Outcome {
    call.thread
        .credentials
        .with(|who| who.require(Capability::SysBoot))?;
    if call.uint(0) != LINUX_REBOOT_MAGIC1 || !MAGIC2.contains(&call.uint(1)) {
        return Err(Errno::EINVAL);
    }
    match call.uint(2) {
        // There is no keyboard whose Ctrl-Alt-Delete could ask.
        LINUX_REBOOT_CMD_CAD_ON | LINUX_REBOOT_CMD_CAD_OFF => Ok(0),
        LINUX_REBOOT_CMD_RESTART => restart(),
        LINUX_REBOOT_CMD_RESTART2 => {
            // It is for firmware that has several ways to start; it must be there.
            user::read_string(call.addr(3), ARGUMENT_BYTES_MAX)?;
            restart()
        }
        LINUX_REBOOT_CMD_HALT => {
            death::bring_out_all();
            mach::power::halt()
        }
        LINUX_REBOOT_CMD_POWER_OFF => {
            death::bring_out_all();
            mach::power::off(0)
        }
        _ => Err(Errno::EINVAL),
    }
}

fn restart() -> ! {
    death::bring_out_all();
    mach::power::restart()
}
