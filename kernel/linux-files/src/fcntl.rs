//! fcntl, dup and its kin.

use alloc::sync::Arc;

use linux_raw_sys::general::*;
use mm::may_be_stored_to;
use vfs::file::OpenFile;
use vfs::seals::Seal;

use crate::{async_io, lock};
use linux_abi::call::{Arg, Call, Entry, Outcome};
use linux_abi::descriptor::only;
use linux_abi::errno::Errno;
use linux_abi::missing;

/// The calls of this family.
pub const CALLS: &[Entry] = &[
    Entry {
        number: __NR_dup,
        name: "dup",
        args: &[Arg::Fd],
        handler: dup,
    },
    Entry {
        number: __NR_dup2,
        name: "dup2",
        args: &[Arg::Fd, Arg::Fd],
        handler: dup2,
    },
    Entry {
        number: __NR_dup3,
        name: "dup3",
        args: &[Arg::Fd, Arg::Fd, Arg::Flags],
        handler: dup3,
    },
    Entry {
        number: __NR_fcntl,
        name: "fcntl",
        args: &[Arg::Fd, Arg::Int, Arg::Int],
        handler: fcntl,
    },
];

fn dup(call: Call<'_>) -> Outcome {
    Ok(call.new_fd(call.open_file(0)?, 0)?)
}

fn dup2(call: Call<'_>) -> Outcome {
    let open = call.open_file(0)?;
    if call.uint(0) == call.uint(1) {
        return Ok(call.uint(1) as usize);
    }
    replace(&call, open, 0)
}

fn dup3(call: Call<'_>) -> Outcome {
    let flags = only(call.uint(2), O_CLOEXEC)?;
    if call.uint(0) == call.uint(1) {
        return Err(Errno::EINVAL);
    }
    replace(&call, call.open_file(0)?, flags)
}

fn replace(call: &Call<'_>, with: alloc::sync::Arc<OpenFile>, flags: u32) -> Outcome {
    let fd = call.uint(1);
    let files = call.thread.files.get();
    drop(files.replace(fd, with, flags & O_CLOEXEC != 0, call.fd_limit())?);
    Ok(fd as usize)
}

fn fcntl(call: Call<'_>) -> Outcome {
    let file = call.open_file(0)?;
    let command = call.uint(1);
    // An open file that only names a place has no more than its descriptor.
    let path_only = file.flags().contains(vfs::file::StatusFlags::PATH);
    if path_only
        && !matches!(
            command,
            F_DUPFD | F_DUPFD_CLOEXEC | F_GETFD | F_SETFD | F_GETFL
        )
    {
        return Err(Errno::EBADF);
    }
    match command {
        F_DUPFD => duplicate(&call, file, false),
        F_DUPFD_CLOEXEC => duplicate(&call, file, true),
        F_GETFD => {
            let close = call.thread.files.get().close_on_exec(call.uint(0))?;
            Ok(if close { FD_CLOEXEC as usize } else { 0 })
        }
        F_SETFD => {
            let close = call.uint(2) & FD_CLOEXEC != 0;
            call.thread
                .files
                .get()
                .set_close_on_exec(call.uint(0), close)?;
            Ok(0)
        }
        F_GETFL if path_only => Ok(file.flags().bits() as usize),
        F_GETFL => Ok((file.flags().bits() | O_LARGEFILE) as usize),
        F_SETFL => {
            let flags = vfs::file::StatusFlags::from_bits_truncate(call.uint(2));
            async_io::set_flags(&call, &file, flags)
        }
        F_GETLK | F_SETLK | F_SETLKW | F_OFD_GETLK | F_OFD_SETLK | F_OFD_SETLKW => {
            lock::record(&call, &file, command)
        }
        F_GET_SEALS => {
            let inode = file.inode().ok_or(Errno::EINVAL)?;
            Ok(inode.seals().ok_or(Errno::EINVAL)?.get().bits() as usize)
        }
        F_ADD_SEALS => add_seals(&call, &file),
        F_DUPFD_QUERY => {
            let other = call.open_file(2)?;
            Ok(usize::from(Arc::ptr_eq(&file, &other)))
        }
        F_GETPIPE_SZ => Ok(file.file.pipe_capacity(None).ok_or(Errno::EBADF)??),
        F_SETPIPE_SZ => Ok(file
            .file
            .pipe_capacity(Some(call.size(2)))
            .ok_or(Errno::EBADF)??),
        _ => async_io::fcntl(&call, &file).unwrap_or_else(|| {
            missing::count_option("fcntl", u64::from(command));
            Err(Errno::EINVAL)
        }),
    }
}

fn duplicate(call: &Call<'_>, open: alloc::sync::Arc<OpenFile>, close_on_exec: bool) -> Outcome {
    let (least, limit) = (call.uint(2), call.fd_limit());
    if least >= limit {
        return Err(Errno::EINVAL);
    }
    let fd = call
        .thread
        .files
        .get()
        .insert(open, close_on_exec, least, limit)?;
    Ok(fd as usize)
}

fn add_seals(call: &Call<'_>, file: &OpenFile) -> Outcome {
    let seals = Seal::from_bits(call.uint(2)).ok_or(Errno::EINVAL)?;
    if !file.is_writable() {
        return Err(Errno::EPERM);
    }
    let inode = file.inode().ok_or(Errno::EINVAL)?;
    inode.seals().ok_or(Errno::EINVAL)?.add(seals, || {
        inode
            .clone()
            .memory()
            .is_some_and(|memory| may_be_stored_to(Arc::as_ptr(&memory).addr()))
    })?;
    Ok(0)
}
