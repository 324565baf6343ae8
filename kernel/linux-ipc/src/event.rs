//! eventfd, eventfd2.

use ipc::eventfd::{EventFd, Mode};
use linux_raw_sys::general::{__NR_eventfd, __NR_eventfd2, O_CLOEXEC, O_NONBLOCK};
use vfs::file::StatusFlags;

use linux_abi::call::{Arg, Call, Entry, Outcome};
use linux_abi::descriptor::only;

const EFD_SEMAPHORE: u32 = 1;

/// The calls of this family.
pub const CALLS: &[Entry] = &[
    Entry {
        number: __NR_eventfd,
        name: "eventfd",
        args: &[Arg::Int],
        handler: eventfd,
    },
    Entry {
        number: __NR_eventfd2,
        name: "eventfd2",
        args: &[Arg::Int, Arg::Flags],
        handler: eventfd2,
    },
];

fn eventfd(call: Call<'_>) -> Outcome {
    create(&call, 0)
}

fn eventfd2(call: Call<'_>) -> Outcome {
    let flags = only(call.uint(1), EFD_SEMAPHORE | O_CLOEXEC | O_NONBLOCK)?;
    create(&call, flags)
}

fn create(call: &Call<'_>, flags: u32) -> Outcome {
    let mode = if flags & EFD_SEMAPHORE != 0 {
        Mode::Semaphore
    } else {
        Mode::Counter
    };
    let event = EventFd::new(u64::from(call.uint(0)), mode);
    Ok(call.open_fd(event, StatusFlags::RDWR, flags)?)
}
