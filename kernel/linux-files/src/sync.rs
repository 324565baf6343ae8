//! Bringing data to the medium (fsync and its kin), and advice about it.

use base::Instant;
use linux_raw_sys::general::*;
use vfs::{FileType, mount};

use linux_abi::call::{Arg, Call, Entry, Outcome};
use linux_abi::errno::Errno;

/// The calls of this family.
pub const CALLS: &[Entry] = &[
    Entry {
        number: __NR_sync,
        name: "sync",
        args: &[],
        handler: sync,
    },
    Entry {
        number: __NR_syncfs,
        name: "syncfs",
        args: &[Arg::Fd],
        handler: syncfs,
    },
    Entry {
        number: __NR_fsync,
        name: "fsync",
        args: &[Arg::Fd],
        handler: fsync,
    },
    Entry {
        number: __NR_fdatasync,
        name: "fdatasync",
        args: &[Arg::Fd],
        handler: fdatasync,
    },
    Entry {
        number: __NR_sync_file_range,
        name: "sync_file_range",
        args: &[Arg::Fd, Arg::Int, Arg::Int, Arg::Flags],
        handler: sync_file_range,
    },
    Entry {
        number: __NR_fadvise64,
        name: "fadvise64",
        args: &[Arg::Fd, Arg::Int, Arg::Int, Arg::Int],
        handler: fadvise,
    },
    Entry {
        number: __NR_readahead,
        name: "readahead",
        args: &[Arg::Fd, Arg::Int, Arg::Size],
        handler: readahead,
    },
];

/// POSIX_FADV_NOREUSE, the last kind of advice.
const ADVICE_MAX: u32 = 5;

fn sync(_call: Call<'_>) -> Outcome {
    // sync(2) has no way to tell of a failure.
    let _ = mount::sync_all();
    // Those too that are mounted no more, and still used.
    kernel_pagecache::flush_all(Instant::NEVER);
    Ok(0)
}

fn syncfs(call: Call<'_>) -> Outcome {
    if let Some(path) = &call.file(0)?.path {
        path.mount.block.system.sync()?;
    }
    Ok(0)
}

fn fsync(call: Call<'_>) -> Outcome {
    bring_out(&call, false)
}

fn fdatasync(call: Call<'_>) -> Outcome {
    bring_out(&call, true)
}

fn sync_file_range(call: Call<'_>) -> Outcome {
    let known = SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE | SYNC_FILE_RANGE_WAIT_AFTER;
    if call.uint(3) & !known != 0 || (call.arg(1) as i64) < 0 || (call.arg(2) as i64) < 0 {
        return Err(Errno::EINVAL);
    }
    match call.file(0)?.inode().map(|inode| inode.kind()) {
        Some(FileType::Regular | FileType::Directory | FileType::BlockDevice) => {
            bring_out(&call, true)
        }
        _ => Err(Errno::ESPIPE),
    }
}

fn bring_out(call: &Call<'_>, data_only: bool) -> Outcome {
    call.file(0)?.bring_out(data_only)?;
    Ok(0)
}

/// Advice needs no action: the cache keeps what was read as long as memory allows.
fn fadvise(call: Call<'_>) -> Outcome {
    if call.file(0)?.inode().is_none() {
        return Err(Errno::ESPIPE);
    }
    if call.uint(3) > ADVICE_MAX || (call.arg(2) as i64) < 0 {
        Err(Errno::EINVAL)
    } else {
        Ok(0)
    }
}

fn readahead(call: Call<'_>) -> Outcome {
    let open = call.file(0)?;
    if !open.is_readable() {
        return Err(Errno::EBADF);
    }
    if open.is_regular() {
        Ok(0)
    } else {
        Err(Errno::EINVAL)
    }
}
