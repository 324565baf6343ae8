//! signalfd, signalfd4.

use ipc::signalfd::SignalFd;
use linux_raw_sys::general::{__NR_signalfd, __NR_signalfd4, O_CLOEXEC, O_NONBLOCK};
use mm::user;
use task::signal::SignalSet;
use vfs::file::StatusFlags;

use linux_abi::call::{Arg, Call, Entry, Outcome};
use linux_abi::descriptor::only;
use linux_abi::errno::Errno;

/// The calls of this family.
pub const CALLS: &[Entry] = &[
    Entry {
        number: __NR_signalfd,
        name: "signalfd",
        args: &[Arg::Int, Arg::Address, Arg::Size],
        handler: signalfd,
    },
    Entry {
        number: __NR_signalfd4,
        name: "signalfd4",
        args: &[Arg::Int, Arg::Address, Arg::Size, Arg::Flags],
        handler: signalfd4,
    },
];

fn signalfd(call: Call<'_>) -> Outcome {
    set(&call, 0)
}

fn signalfd4(call: Call<'_>) -> Outcome {
    let flags = only(call.uint(3), O_CLOEXEC | O_NONBLOCK)?;
    set(&call, flags)
}

/// Makes one for descriptor -1, else changes the one that is there.
fn set(call: &Call<'_>, flags: u32) -> Outcome {
    if call.size(2) != size_of::<u64>() {
        return Err(Errno::EINVAL);
    }
    let wanted = SignalSet(user::read(call.addr(1))?);
    if call.int(0) == -1 {
        return Ok(call.open_fd(SignalFd::new(wanted), StatusFlags::RDWR, flags)?);
    }
    let open = call.file(0)?;
    let signals = open
        .file
        .as_any()
        .downcast_ref::<SignalFd>()
        .ok_or(Errno::EINVAL)?;
    signals.set(wanted);
    Ok(call.uint(0) as usize)
}
