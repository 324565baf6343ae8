//! read, write and their kin with positions and ranges; lseek.

use alloc::sync::Arc;

use linux_raw_sys::general::*;
use sync::{Error, Result};
use vfs::FileType;
use vfs::file::OpenFile;

use linux_abi::call::{Arg, Call, Entry, Outcome};
use linux_abi::errno::Errno;
use linux_abi::iovec;

const FD_BUFFER: &[Arg] = &[Arg::Fd, Arg::Buffer, Arg::Size];
const FD_VECTOR: &[Arg] = &[Arg::Fd, Arg::Address, Arg::Int];
const FD_BUFFER_AT: &[Arg] = &[Arg::Fd, Arg::Buffer, Arg::Size, Arg::Int];
const FD_OUT: &[Arg] = &[Arg::Fd, Arg::Address, Arg::Size];
const FD_OUT_AT: &[Arg] = &[Arg::Fd, Arg::Address, Arg::Size, Arg::Int];
const FD_VECTOR_AT: &[Arg] = &[Arg::Fd, Arg::Address, Arg::Int, Arg::Int];

/// The calls of this family.
pub const CALLS: &[Entry] = &[
    Entry {
        number: __NR_read,
        name: "read",
        args: FD_OUT,
        handler: read,
    },
    Entry {
        number: __NR_write,
        name: "write",
        args: FD_BUFFER,
        handler: write,
    },
    Entry {
        number: __NR_pread64,
        name: "pread64",
        args: FD_OUT_AT,
        handler: pread,
    },
    Entry {
        number: __NR_pwrite64,
        name: "pwrite64",
        args: FD_BUFFER_AT,
        handler: pwrite,
    },
    Entry {
        number: __NR_readv,
        name: "readv",
        args: FD_VECTOR,
        handler: readv,
    },
    Entry {
        number: __NR_writev,
        name: "writev",
        args: FD_VECTOR,
        handler: writev,
    },
    Entry {
        number: __NR_preadv,
        name: "preadv",
        args: FD_VECTOR_AT,
        handler: preadv,
    },
    Entry {
        number: __NR_pwritev,
        name: "pwritev",
        args: FD_VECTOR_AT,
        handler: pwritev,
    },
    Entry {
        number: __NR_preadv2,
        name: "preadv2",
        args: FD_VECTOR_AT,
        handler: preadv2,
    },
    Entry {
        number: __NR_pwritev2,
        name: "pwritev2",
        args: FD_VECTOR_AT,
        handler: pwritev2,
    },
    Entry {
        number: __NR_lseek,
        name: "lseek",
        args: &[Arg::Fd, Arg::Int, Arg::Int],
        handler: lseek,
    },
];

fn read(call: Call<'_>) -> Outcome {
    Ok(call.file(0)?.read(&mut iovec::sink_at(&call, 1)?)?)
}

fn write(call: Call<'_>) -> Outcome {
    Ok(call.file(0)?.write(&mut iovec::source_at(&call, 1)?)?)
}

fn readv(call: Call<'_>) -> Outcome {
    let open = call.file(0)?;
    Ok(open.read(&mut iovec::sink(call.addr(1), call.size(2))?)?)
}

fn writev(call: Call<'_>) -> Outcome {
    let open = call.file(0)?;
    Ok(open.write(&mut iovec::source(call.addr(1), call.size(2))?)?)
}

/// The file in argument 0 and the offset in argument `index`.
fn at(call: &Call<'_>, index: usize) -> Result<(Arc<OpenFile>, u64)> {
    let offset = u64::try_from(call.arg(index) as i64).map_err(|_| Error::Invalid)?;
    Ok((call.file(0)?, offset))
}

fn pread(call: Call<'_>) -> Outcome {
    let (open, offset) = at(&call, 3)?;
    Ok(open.read_at(offset, &mut iovec::sink_at(&call, 1)?)?)
}

fn pwrite(call: Call<'_>) -> Outcome {
    let (open, offset) = at(&call, 3)?;
    Ok(open.write_at(offset, &mut iovec::source_at(&call, 1)?)?)
}

fn preadv(call: Call<'_>) -> Outcome {
    let (open, offset) = at(&call, 3)?;
    Ok(open.read_at(offset, &mut iovec::sink(call.addr(1), call.size(2))?)?)
}

fn pwritev(call: Call<'_>) -> Outcome {
    let (open, offset) = at(&call, 3)?;
    Ok(open.write_at(offset, &mut iovec::source(call.addr(1), call.size(2))?)?)
}

/// Flags of preadv2 that change nothing here: what they hint at is always so.
const HINTS: u32 = RWF_HIPRI | RWF_NOWAIT;

fn preadv2(call: Call<'_>) -> Outcome {
    if call.uint(5) & !HINTS != 0 {
        return Err(Errno::EOPNOTSUPP);
    }
    if call.arg(3) as i64 == -1 {
        readv(call)
    } else {
        preadv(call)
    }
}

fn pwritev2(call: Call<'_>) -> Outcome {
    let flags = call.uint(5);
    if flags & !(HINTS | RWF_DSYNC | RWF_SYNC) != 0 {
        return Err(Errno::EOPNOTSUPP);
    }
    let is_synced = flags & (RWF_DSYNC | RWF_SYNC) != 0;
    let synced = is_synced.then(|| call.file(0)).transpose()?;
    let count = if call.arg(3) as i64 == -1 {
        writev(call)?
    } else {
        pwritev(call)?
    };
    if let Some(inode) = synced.as_ref().and_then(|open| open.inode()) {
        inode.sync(flags & RWF_SYNC == 0)?;
    }
    Ok(count)
}

fn lseek(call: Call<'_>) -> Outcome {
    let open = call.file(0)?;
    let offset = call.arg(1) as i64;
    let inode = || open.inode().ok_or(Errno::ESPIPE);
    if call.uint(2) > SEEK_HOLE {
        return Err(Errno::EINVAL);
    }
    if open.file.ignores_seeks() {
        return Ok(0);
    }
    if !open.file.is_seekable() {
        return Err(Errno::ESPIPE);
    }
    let mut position = open.position.lock();
    if !open.file.moves_position() {
        return Ok(*position as usize);
    }
    let base = match call.uint(2) {
        SEEK_SET => 0,
        SEEK_CUR => *position as i64,
        SEEK_END => open.size()? as i64,
        SEEK_DATA | SEEK_HOLE if inode()?.kind() == FileType::Directory => {
            return Err(Errno::EINVAL);
        }
        whence @ (SEEK_DATA | SEEK_HOLE) => {
            let from = u64::try_from(offset).map_err(|_| Errno::ENXIO)?;
            *position = inode()?.seek(from, whence == SEEK_HOLE)?;
            return Ok(*position as usize);
        }
        _ => return Err(Errno::EINVAL),
    };
    let target = base.checked_add(offset).ok_or(Errno::EOVERFLOW)?;
    *position = u64::try_from(target).map_err(|_| Errno::EINVAL)?;
    Ok(*position as usize)
}
