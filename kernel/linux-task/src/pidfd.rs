//! pidfd_open, pidfd_send_signal: processes by descriptor.

use linux_raw_sys::general::{__NR_pidfd_open, __NR_pidfd_send_signal, O_CLOEXEC, O_NONBLOCK};
use task::signal::{self, Signal, code};
use task::{family, pid_file, process_of};
use vfs::file::StatusFlags;

use linux_abi::call::{Arg, Call, Entry, Outcome};
use linux_abi::descriptor::only;
use linux_abi::errno::Errno;

/// The calls of this family.
pub const CALLS: &[Entry] = &[
    Entry {
        number: __NR_pidfd_open,
        name: "pidfd_open",
        args: &[Arg::Int, Arg::Flags],
        handler: pidfd_open,
    },
    Entry {
        number: __NR_pidfd_send_signal,
        name: "pidfd_send_signal",
        args: &[Arg::Fd, Arg::Signal, Arg::Address, Arg::Flags],
        handler: pidfd_send_signal,
    },
];

fn pidfd_open(call: Call<'_>) -> Outcome {
    let flags = only(call.uint(1), O_NONBLOCK)?;
    let pid = u32::try_from(call.int(0)).ok().filter(|&pid| pid != 0);
    let process = family::find(pid.ok_or(Errno::EINVAL)?).ok_or(Errno::ESRCH)?;
    Ok(call.open_fd(pid_file(process), StatusFlags::RDWR, flags | O_CLOEXEC)?)
}

fn pidfd_send_signal(call: Call<'_>) -> Outcome {
    only(call.uint(3), 0)?;
    let open = call.file(0)?;
    // Linux takes a directory of procfs as well, which was there before pidfd_open(2).
    let process = match procfs::proc::process_of_directory(&open) {
        Some(process) => process,
        None => process_of(&open)?,
    };
    if process.has_ended() {
        return Err(Errno::ESRCH);
    }
    let signal = match call.uint(1) {
        0 => None,
        number => Some(Signal::new(number).ok_or(Errno::EINVAL)?),
    };
    signal::check_permission(&process, signal)?;
    if let Some(signal) = signal {
        let info = match call.optional_addr(2) {
            Some(at) => crate::signal::read_info(&call, at, process.id(), signal)?,
            None => signal::from_current(signal, code::USER),
        };
        signal::send_to_process(&process, info)?;
    }
    Ok(0)
}
