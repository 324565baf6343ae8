//! open, openat, openat2, creat, close, close_range, memfd_create.

use alloc::sync::Arc;

use fs_tmp::memfd;
use linux_raw_sys::general::*;
use mm::user;
use sched::resched_point;
use vfs::file::StatusFlags;
use vfs::{self, CreationFlags, OpenHow, Path, Walk};

use linux_abi::call::{Arg, Call, Entry, Outcome};
use linux_abi::descriptor::only;
use linux_abi::errno::Errno;

/// The calls of this family.
pub const CALLS: &[Entry] = &[
    Entry {
        number: __NR_open,
        name: "open",
        args: &[Arg::Path, Arg::Flags, Arg::Mode],
        handler: open,
    },
    Entry {
        number: __NR_creat,
        name: "creat",
        args: &[Arg::Path, Arg::Mode],
        handler: creat,
    },
    Entry {
        number: __NR_openat,
        name: "openat",
        args: &[Arg::DirFd, Arg::Path, Arg::Flags, Arg::Mode],
        handler: openat,
    },
    Entry {
        number: __NR_openat2,
        name: "openat2",
        args: &[Arg::DirFd, Arg::Path, Arg::Address, Arg::Size],
        handler: openat2,
    },
    Entry {
        number: __NR_close,
        name: "close",
        args: &[Arg::Fd],
        handler: close,
    },
    Entry {
        number: __NR_close_range,
        name: "close_range",
        args: &[Arg::Int, Arg::Int, Arg::Flags],
        handler: close_range,
    },
    Entry {
        number: __NR_memfd_create,
        name: "memfd_create",
        args: &[Arg::Path, Arg::Flags],
        handler: memfd_create,
    },
];

/// All flags that open(2) defines.
const FLAGS_KNOWN: u32 = O_ACCMODE
    | O_CREAT
    | O_EXCL
    | O_NOCTTY
    | O_TRUNC
    | O_APPEND
    | O_NONBLOCK
    | O_DSYNC
    | O_SYNC
    | FASYNC
    | O_DIRECT
    | O_LARGEFILE
    | O_DIRECTORY
    | O_NOFOLLOW
    | O_NOATIME
    | O_CLOEXEC
    | O_PATH
    | O_TMPFILE;
/// close_range(2): the thread gets a table of its own first.
const CLOSE_RANGE_UNSHARE: u32 = 1 << 1;
/// close_range(2): the numbers are closed by exec, not now.
const CLOSE_RANGE_CLOEXEC: u32 = 1 << 2;
/// O_TMPFILE without the O_DIRECTORY that it contains.
const TMPFILE_BIT: u32 = O_TMPFILE & !O_DIRECTORY;

fn decode(flags: u32, mode: u32, walk: Walk) -> Result<OpenHow, Errno> {
    let flags = if flags & O_PATH == 0 {
        flags & FLAGS_KNOWN
    } else {
        flags & (O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
    };
    let nameless = flags & TMPFILE_BIT != 0;
    if nameless && flags & O_DIRECTORY == 0 {
        return Err(Errno::EINVAL);
    }
    if flags & O_CREAT != 0 && flags & O_DIRECTORY != 0 {
        return Err(Errno::EINVAL);
    }
    let pairs = [
        (O_CREAT, CreationFlags::CREATE),
        (O_EXCL, CreationFlags::EXCLUSIVE),
        (O_TRUNC, CreationFlags::TRUNCATE),
        (O_DIRECTORY, CreationFlags::DIRECTORY),
        (O_NOFOLLOW, CreationFlags::NO_FOLLOW),
        (TMPFILE_BIT, CreationFlags::NAMELESS),
    ];
    let chosen = pairs
        .iter()
        .filter(|(bit, _)| flags & bit != 0)
        .map(|(_, creation)| *creation);
    let creation = chosen.fold(CreationFlags::empty(), CreationFlags::union);
    // O_EXCL means something only with O_CREAT; a link at the end is then not followed.
    let exclusive = creation.contains(CreationFlags::CREATE | CreationFlags::EXCLUSIVE);
    let creation = if exclusive {
        creation | CreationFlags::NO_FOLLOW
    } else {
        creation
    };
    let status = StatusFlags::from_bits_truncate(flags);
    Ok(OpenHow {
        creation,
        status,
        mode: mode & 0o7777,
        walk,
    })
}

fn open(call: Call<'_>) -> Outcome {
    let how = decode(call.uint(1), call.uint(2), Walk::empty())?;
    let opened = vfs::open(None, &call.path(0)?, &how)?;
    Ok(call.new_fd(opened, call.uint(1))?)
}

fn creat(call: Call<'_>) -> Outcome {
    let how = decode(O_CREAT | O_WRONLY | O_TRUNC, call.uint(1), Walk::empty())?;
    let opened = vfs::open(None, &call.path(0)?, &how)?;
    Ok(call.new_fd(opened, 0)?)
}

fn openat(call: Call<'_>) -> Outcome {
    let how = decode(call.uint(2), call.uint(3), Walk::empty())?;
    open_from(&call, &how, call.uint(2))
}

fn open_from(call: &Call<'_>, how: &OpenHow, flags: u32) -> Outcome {
    let path = call.path(1)?;
    let start = call.start(0, &path)?;
    open_at(call, start.as_ref(), &path, how, flags)
}

fn open_at(
    call: &Call<'_>,
    start: Option<&Path>,
    path: &[u8],
    how: &OpenHow,
    flags: u32,
) -> Outcome {
    let opened = vfs::open(start, path, how)?;
    Ok(call.new_fd(opened, flags)?)
}

/// Words of struct open_how: flags, mode, resolve.
const HOW_BYTES: usize = 24;
/// With O_PATH an open file has no more.
const PATH_KNOWN: u32 = O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;

fn openat2(call: Call<'_>) -> Outcome {
    let size = call.size(3);
    if size < HOW_BYTES {
        return Err(Errno::EINVAL);
    }
    if size > base::PAGE_BYTES {
        return Err(Errno::E2BIG);
    }
    let [flags, mode, resolve]: [u64; 3] = user::read(call.addr(2))?;
    for offset in HOW_BYTES..size {
        if user::read::<u8>(call.addr(2) + offset as u64)? != 0 {
            return Err(Errno::E2BIG);
        }
    }
    let flags = u32::try_from(flags).map_err(|_| Errno::EINVAL)?;
    let creates = flags & (O_CREAT | TMPFILE_BIT) != 0;
    if flags & !FLAGS_KNOWN != 0 || mode & !0o7777 != 0 || mode != 0 && !creates {
        return Err(Errno::EINVAL);
    }
    if flags & O_PATH != 0 && flags & !PATH_KNOWN != 0 {
        return Err(Errno::EINVAL);
    }
    let how = decode(flags, mode as u32, decode_resolve(resolve)?)?;
    let path = call.path(1)?;
    // Such a path is below the directory, however it begins.
    let start = match how.walk.contains(Walk::IN_ROOT) {
        true => call.start(0, b".")?,
        false => call.start(0, &path)?,
    };
    open_at(&call, start.as_ref(), &path, &how, flags)
}

fn decode_resolve(resolve: u64) -> Result<Walk, Errno> {
    let pairs = [
        (RESOLVE_NO_XDEV, Walk::ONE_MOUNT),
        (RESOLVE_NO_MAGICLINKS, Walk::NO_MAGIC),
        (RESOLVE_NO_SYMLINKS, Walk::NO_SYMLINKS),
        (RESOLVE_BENEATH, Walk::BENEATH),
        (RESOLVE_IN_ROOT, Walk::IN_ROOT),
    ];
    let known = pairs.iter().fold(0, |all, (bit, _)| all | u64::from(*bit));
    let both = u64::from(RESOLVE_BENEATH | RESOLVE_IN_ROOT);
    if resolve & !(known | u64::from(RESOLVE_CACHED)) != 0 || resolve & both == both {
        return Err(Errno::EINVAL);
    }
    let chosen = pairs
        .iter()
        .filter(|(bit, _)| resolve & u64::from(*bit) != 0);
    Ok(chosen.fold(Walk::empty(), |walk, (_, rule)| walk | *rule))
}

fn close(call: Call<'_>) -> Outcome {
    let open = call.thread.files.with(|files| files.remove(call.uint(0)))?;
    drop(open);
    Ok(0)
}

fn close_range(call: Call<'_>) -> Outcome {
    let (first, last) = (call.uint(0), call.uint(1));
    let flags = only(call.uint(2), CLOSE_RANGE_UNSHARE | CLOSE_RANGE_CLOEXEC)?;
    if first > last {
        return Err(Errno::EINVAL);
    }
    if flags & CLOSE_RANGE_UNSHARE != 0 {
        let own = call.thread.files.with(|files| files.fork())?;
        drop(call.thread.files.replace(Arc::new(own)));
    }
    let files = call.thread.files.get();
    let mut next = first;
    while let Some(fd) = files.next_number(next).filter(|fd| *fd <= last) {
        if flags & CLOSE_RANGE_CLOEXEC != 0 {
            // Another thread may have closed it meanwhile, which is as good.
            let _ = files.set_close_on_exec(fd, true);
        } else {
            drop(files.remove(fd));
        }
        next = fd + 1;
        resched_point();
    }
    Ok(0)
}

fn memfd_create(call: Call<'_>) -> Outcome {
    let known = MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_NOEXEC_SEAL | MFD_EXEC;
    let flags = only(call.uint(1), known)?;
    let name = user::read_string(call.addr(0), memfd::NAME_BYTES_MAX + 1)?.ok_or(Errno::EINVAL)?;
    let sealable = flags & (MFD_ALLOW_SEALING | MFD_NOEXEC_SEAL) != 0;
    let open = memfd::create(&name, sealable)?;
    let close_on_exec = if flags & MFD_CLOEXEC != 0 {
        O_CLOEXEC
    } else {
        0
    };
    Ok(call.new_fd(open, close_on_exec)?)
}
