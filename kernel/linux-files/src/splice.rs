//! splice, tee, vmsplice.

use base::VirtAddr;
use ipc::pipe::Access;
use ipc::splice::{Blocking, Keep, between, end_of, from_memory, from_pipe, to_memory, to_pipe};
use linux_raw_sys::general::{__NR_splice, __NR_tee, __NR_vmsplice};
use mm::user;
use sync::{Error, Result};
use vfs::file::{OpenFile, StatusFlags};

use linux_abi::call::{Arg, Call, Entry, Outcome};
use linux_abi::descriptor::only;
use linux_abi::errno::Errno;
use linux_abi::iovec::{self, TRANSFER_BYTES_MAX};

/// The calls of this family.
pub const CALLS: &[Entry] = &[
    Entry {
        number: __NR_splice,
        name: "splice",
        args: &[
            Arg::Fd,
            Arg::Address,
            Arg::Fd,
            Arg::Address,
            Arg::Size,
            Arg::Flags,
        ],
        handler: splice,
    },
    Entry {
        number: __NR_tee,
        name: "tee",
        args: &[Arg::Fd, Arg::Fd, Arg::Size, Arg::Flags],
        handler: tee,
    },
    Entry {
        number: __NR_vmsplice,
        name: "vmsplice",
        args: &[Arg::Fd, Arg::Address, Arg::Size, Arg::Flags],
        handler: vmsplice,
    },
];

/// SPLICE_F_MOVE, NONBLOCK, MORE and GIFT; only the second has an effect here.
const FLAGS: u32 = 0xf;
const NONBLOCK: u32 = 2;

fn blocking<const ENDS: usize>(flags: u32, ends: [&OpenFile; ENDS]) -> Blocking {
    let never = flags & NONBLOCK != 0 || ends.iter().any(|open| open.is_nonblocking());
    if never {
        Blocking::Never
    } else {
        Blocking::MayWait
    }
}

/// The offset at argument `index`; a pipe has none.
fn offset(call: &Call<'_>, index: usize, is_pipe: bool) -> Result<Option<u64>> {
    match call.optional_addr(index) {
        None => Ok(None),
        Some(_) if is_pipe => Err(Error::NotSeekable),
        Some(at) => {
            let offset: i64 = user::read(at)?;
            u64::try_from(offset).map(Some).map_err(|_| Error::Invalid)
        }
    }
}

fn advance(at: Option<VirtAddr>, offset: Option<u64>, moved: usize) -> Result<()> {
    match (at, offset) {
        (Some(at), Some(offset)) => user::write(at, offset + moved as u64),
        _ => Ok(()),
    }
}

fn splice(call: Call<'_>) -> Outcome {
    let flags = only(call.uint(5), FLAGS)?;
    let (from, to) = (call.file(0)?, call.file(2)?);
    if !from.is_readable() || !to.is_writable() {
        return Err(Errno::EBADF);
    }
    let source = end_of(&from, Access::READ)?;
    let target = end_of(&to, Access::WRITE)?;
    let from_offset = offset(&call, 1, source.is_some())?;
    let to_offset = offset(&call, 3, target.is_some())?;
    let count = call.size(4).min(TRANSFER_BYTES_MAX);
    if count == 0 {
        return Ok(0);
    }
    if target.is_none() && to.flags().contains(StatusFlags::APPEND) {
        return Err(Errno::EINVAL);
    }
    let blocking = blocking(flags, [&from, &to]);
    let moved = match (source, target) {
        (Some(source), Some(target)) => between(source, target, count, Keep::No, blocking)?,
        (Some(source), None) => from_pipe(source, &to, to_offset, count, blocking)?,
        (None, Some(target)) => to_pipe(&from, from_offset, target, count, blocking)?,
        (None, None) => return Err(Errno::EINVAL),
    };
    advance(call.optional_addr(1), from_offset, moved)?;
    advance(call.optional_addr(3), to_offset, moved)?;
    Ok(moved)
}

fn tee(call: Call<'_>) -> Outcome {
    let flags = only(call.uint(3), FLAGS)?;
    let (from, to) = (call.file(0)?, call.file(1)?);
    let source = end_of(&from, Access::READ)?.ok_or(Errno::EINVAL)?;
    let target = end_of(&to, Access::WRITE)?.ok_or(Errno::EINVAL)?;
    let count = call.size(2).min(TRANSFER_BYTES_MAX);
    if count == 0 {
        return Ok(0);
    }
    Ok(between(
        source,
        target,
        count,
        Keep::Yes,
        blocking(flags, [&from, &to]),
    )?)
}

/// Into the pipe where it may be written, else out of it.
fn vmsplice(call: Call<'_>) -> Outcome {
    let flags = only(call.uint(3), FLAGS)?;
    let open = call.file(0)?;
    // Linux does not ask for O_NONBLOCK here.
    let blocking = blocking(flags, []);
    if let Ok(Some(end)) = end_of(&open, Access::WRITE) {
        let from = &mut iovec::source(call.addr(1), call.size(2))?;
        return Ok(from_memory(from, end, blocking)?);
    }
    let end = end_of(&open, Access::READ)?.ok_or(Errno::EBADF)?;
    let to = &mut iovec::sink(call.addr(1), call.size(2))?;
    Ok(to_memory(end, to, blocking)?)
}
