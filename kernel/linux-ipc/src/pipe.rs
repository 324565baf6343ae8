//! pipe, pipe2.

use linux_raw_sys::general::{__NR_pipe, __NR_pipe2, O_CLOEXEC, O_DIRECT, O_NONBLOCK};
use mm::user;
use sync::Error;
use vfs::file::StatusFlags;

use linux_abi::call::{Arg, Call, Entry, Outcome};
use linux_abi::descriptor::only;

/// The calls of this family.
pub const CALLS: &[Entry] = &[
    Entry {
        number: __NR_pipe,
        name: "pipe",
        args: &[Arg::Address],
        handler: pipe,
    },
    Entry {
        number: __NR_pipe2,
        name: "pipe2",
        args: &[Arg::Address, Arg::Flags],
        handler: pipe2,
    },
];

fn pipe(call: Call<'_>) -> Outcome {
    create(call, 0)
}

fn pipe2(call: Call<'_>) -> Outcome {
    let flags = only(call.uint(1), O_CLOEXEC | O_DIRECT | O_NONBLOCK)?;
    create(call, flags)
}

fn create(call: Call<'_>, flags: u32) -> Outcome {
    let (reading, writing) = ipc::pipe::create();
    let reader = call.open_fd(reading, StatusFlags::empty(), flags)?;
    let writer = call.open_fd(writing, StatusFlags::WRONLY, flags);
    let told = writer.and_then(|writer| tell(&call, [reader, writer]));
    if told.is_err() {
        call.close_fd(reader);
    }
    Ok(told.map(|()| 0)?)
}

/// Stores the pair of numbers; on a bad address the second is closed again.
fn tell(call: &Call<'_>, pair: [usize; 2]) -> Result<(), Error> {
    let told = user::write(call.addr(0), pair.map(|fd| fd as i32));
    if told.is_err() {
        call.close_fd(pair[1]);
    }
    told
}
