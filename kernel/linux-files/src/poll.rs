//! poll, ppoll.

use alloc::vec::Vec;

use base::{Instant, VirtAddr};
use linux_raw_sys::general::{__NR_poll, __NR_ppoll};
use mach::mem::fallible::TryGrow;
use mm::user;
use sched::resched_point;
use sync::poll::Events;
use sync::{Error, Restart, Result, Wait};
use vfs::file::poll::{Watched, wait_for_any};

use linux_abi::call::{Arg, Call, Entry, Outcome};
use linux_abi::errno::Errno;
use linux_abi::{deadline, sigmask};

/// The calls of this family.
pub const CALLS: &[Entry] = &[
    Entry {
        number: __NR_poll,
        name: "poll",
        args: &[Arg::Address, Arg::Size, Arg::Int],
        handler: poll,
    },
    Entry {
        number: __NR_ppoll,
        name: "ppoll",
        args: &[
            Arg::Address,
            Arg::Size,
            Arg::Address,
            Arg::Address,
            Arg::Size,
        ],
        handler: ppoll,
    },
];

/// Bytes of a `struct pollfd`, and where its answer lies.
const POLLFD_BYTES: usize = 8;
const ANSWER_OFFSET: u64 = 6;
/// Entries that are read at once, on the stack.
const BATCH_ENTRIES: usize = 32;

fn poll(call: Call<'_>) -> Outcome {
    let deadline = deadline::from_millis(&call, call.int(2));
    poll_until(&call, deadline)
}

fn ppoll(call: Call<'_>) -> Outcome {
    let deadline = deadline::from_timespec(&call, call.optional_addr(2))?;
    sigmask::exchange_for_call(&call, 3, 4)?;
    let outcome = poll_until(&call, deadline);
    deadline::tell_remaining(call.optional_addr(2), deadline);
    outcome
}

fn poll_until(call: &Call<'_>, deadline: Instant) -> Outcome {
    let (at, count) = (call.addr(0), call.size(1));
    if count > call.fd_limit() as usize {
        return Err(Errno::EINVAL);
    }
    let mut files = read_files(call, at, count)?;
    let how = Wait::INTERRUPTIBLE
        .until(deadline)
        .restart(Restart::IfNoHandler);
    let ready = wait_for_any(&mut files, how)?;
    store_answers(&files, at)?;
    Ok(ready)
}

fn read_files(call: &Call<'_>, at: VirtAddr, count: usize) -> Result<Vec<Watched>> {
    let mut files = Vec::new();
    files.make_room(count).map_err(|_| Error::OutOfMemory)?;
    let table = call.thread.files.get();
    let mut bytes = [[0; POLLFD_BYTES]; BATCH_ENTRIES];
    while files.len() < count {
        let batch = (count - files.len()).min(BATCH_ENTRIES);
        resched_point();
        let entries = bytes.get_mut(..batch).unwrap_or_default();
        user::copy_in(
            at + (files.len() * POLLFD_BYTES) as u64,
            entries.as_flattened_mut(),
        )?;
        for [a, b, c, d, low, high, ..] in entries.iter() {
            let fd = i32::from_ne_bytes([*a, *b, *c, *d]);
            let asked = u16::from_ne_bytes([*low, *high]);
            let open = u32::try_from(fd).ok().map(|fd| table.get(fd));
            let is_bad = matches!(open, Some(Err(_)));
            files.push(Watched {
                open: open.and_then(Result::ok),
                interest: Events::from_bits_truncate(u32::from(asked)),
                ready: if is_bad {
                    Events::NVAL
                } else {
                    Events::empty()
                },
            });
        }
    }
    Ok(files)
}

/// Stores each answer in its entry.
fn store_answers(files: &[Watched], at: VirtAddr) -> Result<()> {
    for (index, file) in files.iter().enumerate() {
        let to = at + (index * POLLFD_BYTES) as u64 + ANSWER_OFFSET;
        user::write(to, file.ready.bits() as u16)?;
        resched_point();
    }
    Ok(())
}
