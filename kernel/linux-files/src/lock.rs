//! Locks on files: fcntl's record locks, flock.

use core::ops::Range;

use linux_raw_sys::general::*;
use mm::user;
use vfs::file::OpenFile;
use vfs::locks::{Family, Mode, Owner};

use linux_abi::call::{Arg, Call, Entry, Outcome};
use linux_abi::errno::Errno;

/// The calls of this family.
pub const CALLS: &[Entry] = &[Entry {
    number: __NR_flock,
    name: "flock",
    args: &[Arg::Fd, Arg::Flags],
    handler: flock,
}];

/// The whole of a file, whatever it becomes.
const ALL: Range<u64> = 0..u64::MAX;

fn flock(call: Call<'_>) -> Outcome {
    let open = call.file(0)?;
    let locks = open
        .inode()
        .and_then(|inode| inode.locks())
        .ok_or(Errno::EBADF)?;
    let owner = open.lock_owner();
    let block = call.uint(1) & LOCK_NB == 0;
    match call.uint(1) & !LOCK_NB {
        LOCK_SH => locks.lock(Family::Whole, owner, ALL, Mode::Shared, block)?,
        LOCK_EX => locks.lock(Family::Whole, owner, ALL, Mode::Exclusive, block)?,
        LOCK_UN => locks.unlock(Family::Whole, owner, &ALL),
        _ => return Err(Errno::EINVAL),
    }
    Ok(0)
}

/// struct flock of x86-64 as words: type and whence, start, length, process.
type Flock = [i64; 4];

/// The calling program as the owner of record locks.
fn program(call: &Call<'_>) -> Owner {
    let table = call.thread.files.with(|files| files.lock_owner());
    Owner::Program {
        table,
        process: call.thread.process.id(),
    }
}

/// The `F_*LK` commands of fcntl.
pub fn record(call: &Call<'_>, open: &OpenFile, command: u32) -> Outcome {
    let asked: Flock = user::read(call.addr(2))?;
    let own = matches!(command, F_OFD_GETLK | F_OFD_SETLK | F_OFD_SETLKW);
    if own && asked[3] as i32 != 0 {
        return Err(Errno::EINVAL);
    }
    let owner = if own {
        open.lock_owner()
    } else {
        program(call)
    };
    let range = range_of(open, &asked)?;
    let kind = u32::from(asked[0] as u16);
    match command {
        F_GETLK | F_OFD_GETLK => query(call, open, owner, range, kind, asked),
        F_SETLK | F_OFD_SETLK => set(open, owner, range, kind, false),
        _ => set(open, owner, range, kind, true),
    }
}

/// The bytes meant by whence, start and length.
fn range_of(open: &OpenFile, asked: &Flock) -> Result<Range<u64>, Errno> {
    let base = match (asked[0] >> 16) as u16 as u32 {
        SEEK_SET => 0,
        SEEK_CUR => *open.position.lock() as i64,
        SEEK_END => open.metadata()?.size as i64,
        _ => return Err(Errno::EINVAL),
    };
    let start = base.checked_add(asked[1]).ok_or(Errno::EOVERFLOW)?;
    let other = start.checked_add(asked[2]).ok_or(Errno::EOVERFLOW)?;
    let range = if asked[2] >= 0 {
        start..other
    } else {
        other..start
    };
    let first = u64::try_from(range.start).map_err(|_| Errno::EINVAL)?;
    let last = u64::try_from(range.end).map_err(|_| Errno::EINVAL)?;
    Ok(first..if asked[2] == 0 { u64::MAX } else { last })
}

fn mode_of(kind: u32) -> Result<Mode, Errno> {
    match kind {
        F_RDLCK => Ok(Mode::Shared),
        F_WRLCK => Ok(Mode::Exclusive),
        _ => Err(Errno::EINVAL),
    }
}

fn set(open: &OpenFile, owner: Owner, range: Range<u64>, kind: u32, block: bool) -> Outcome {
    let locks = open
        .inode()
        .and_then(|inode| inode.locks())
        .ok_or(Errno::EBADF)?;
    if kind == F_UNLCK {
        locks.unlock(Family::Record, owner, &range);
        return Ok(0);
    }
    let mode = mode_of(kind)?;
    let allowed = match mode {
        Mode::Shared => open.is_readable(),
        Mode::Exclusive => open.is_writable(),
    };
    if !allowed {
        return Err(Errno::EBADF);
    }
    locks.lock(Family::Record, owner, range, mode, block)?;
    Ok(0)
}

/// Says who is in the way, or that nobody is.
fn query(
    call: &Call<'_>,
    open: &OpenFile,
    owner: Owner,
    range: Range<u64>,
    kind: u32,
    asked: Flock,
) -> Outcome {
    let locks = open
        .inode()
        .and_then(|inode| inode.locks())
        .ok_or(Errno::EBADF)?;
    let Some(held) = locks.conflict(owner, &range, mode_of(kind)?) else {
        let free = [
            asked[0] & !0xffff | i64::from(F_UNLCK),
            asked[1],
            asked[2],
            asked[3],
        ];
        user::write(call.addr(2), free)?;
        return Ok(0);
    };
    let kind = if held.mode == Mode::Shared {
        F_RDLCK
    } else {
        F_WRLCK
    };
    let len = if held.range.end == u64::MAX {
        0
    } else {
        held.range.end - held.range.start
    };
    let process = match held.owner {
        Owner::Program { process, .. } => i64::from(process),
        // Linux's answer for a lock of an open file.
        Owner::Description(_) => i64::from(u32::MAX),
    };
    let told: Flock = [
        i64::from(kind),
        held.range.start as i64,
        len as i64,
        process,
    ];
    user::write(call.addr(2), told)?;
    Ok(0)
}
