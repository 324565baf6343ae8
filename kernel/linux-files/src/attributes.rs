//! Changing files without touching their bytes: chmod, chown, times; and their size:
//! truncate, fallocate.

use base::VirtAddr;
use linux_raw_sys::general::*;
use mm::user;
use sync::{Error, Result};
use vfs::access::{Subject, WRITE, Who};
use vfs::file::{OpenFile, size_limit};
use vfs::notify::{self, Mask};
use vfs::{Change, FileType, Metadata, Path, Timestamp, Walk, set_ids};

use crate::stat::walk_of;
use linux_abi::call::{Arg, Call, Entry, Outcome};
use linux_abi::descriptor::only;
use linux_abi::errno::Errno;

const FD_IDS: &[Arg] = &[Arg::Fd, Arg::Int, Arg::Int];
const PATH_IDS: &[Arg] = &[Arg::Path, Arg::Int, Arg::Int];

/// The calls of this family.
pub const CALLS: &[Entry] = &[
    Entry {
        number: __NR_chmod,
        name: "chmod",
        args: &[Arg::Path, Arg::Mode],
        handler: chmod,
    },
    Entry {
        number: __NR_fchmod,
        name: "fchmod",
        args: &[Arg::Fd, Arg::Mode],
        handler: fchmod,
    },
    Entry {
        number: __NR_fchmodat,
        name: "fchmodat",
        args: &[Arg::DirFd, Arg::Path, Arg::Mode],
        handler: fchmodat,
    },
    Entry {
        number: __NR_fchmodat2,
        name: "fchmodat2",
        args: &[Arg::DirFd, Arg::Path, Arg::Mode, Arg::Flags],
        handler: fchmodat2,
    },
    Entry {
        number: __NR_chown,
        name: "chown",
        args: PATH_IDS,
        handler: chown,
    },
    Entry {
        number: __NR_lchown,
        name: "lchown",
        args: PATH_IDS,
        handler: lchown,
    },
    Entry {
        number: __NR_fchown,
        name: "fchown",
        args: FD_IDS,
        handler: fchown,
    },
    Entry {
        number: __NR_fchownat,
        name: "fchownat",
        args: &[Arg::DirFd, Arg::Path, Arg::Int, Arg::Int, Arg::Flags],
        handler: fchownat,
    },
    Entry {
        number: __NR_utimensat,
        name: "utimensat",
        args: &[Arg::DirFd, Arg::Path, Arg::Address, Arg::Flags],
        handler: utimensat,
    },
    Entry {
        number: __NR_futimesat,
        name: "futimesat",
        args: &[Arg::DirFd, Arg::Path, Arg::Address],
        handler: futimesat,
    },
    Entry {
        number: __NR_utimes,
        name: "utimes",
        args: &[Arg::Path, Arg::Address],
        handler: utimes,
    },
    Entry {
        number: __NR_utime,
        name: "utime",
        args: &[Arg::Path, Arg::Address],
        handler: utime,
    },
    Entry {
        number: __NR_truncate,
        name: "truncate",
        args: &[Arg::Path, Arg::Int],
        handler: truncate,
    },
    Entry {
        number: __NR_ftruncate,
        name: "ftruncate",
        args: &[Arg::Fd, Arg::Int],
        handler: ftruncate,
    },
    Entry {
        number: __NR_fallocate,
        name: "fallocate",
        args: &[Arg::Fd, Arg::Flags, Arg::Int, Arg::Int],
        handler: fallocate,
    },
];

/// The place of an open file, if it has one.
fn place_of(open: &OpenFile) -> Result<&Path> {
    open.path.as_ref().ok_or(Error::Invalid)
}

/// The place of the open file that a descriptor stands for.
fn opened_place(call: &Call<'_>, index: usize) -> Result<Path> {
    let open = call.file(index)?;
    place_of(&open).cloned()
}

/// What is known of a file that is about to change.
fn changing(place: &Path) -> Result<Metadata> {
    place.mount.check_writable()?;
    place.inode().metadata()
}

fn apply(place: &Path, change: &Change) -> Outcome {
    place.inode().change(change)?;
    notify::changed(&place.dentry, Mask::ATTRIB);
    Ok(0)
}

fn chmod(call: Call<'_>) -> Outcome {
    set_mode(&call.place_here(0, Walk::FOLLOW)?, call.uint(1))
}

fn fchmod(call: Call<'_>) -> Outcome {
    set_mode(&opened_place(&call, 0)?, call.uint(1))
}

fn fchmodat(call: Call<'_>) -> Outcome {
    set_mode(&call.place(0, 1, Walk::FOLLOW)?, call.uint(2))
}

fn fchmodat2(call: Call<'_>) -> Outcome {
    let flags = only(call.uint(3), AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH)?;
    set_mode(&call.place(0, 1, walk_of(flags))?, call.uint(2))
}

fn set_mode(place: &Path, mode: u32) -> Outcome {
    let file = changing(place)?;
    if file.kind == FileType::Symlink {
        return Err(Errno::EOPNOTSUPP);
    }
    let subject = Subject::current(Who::Effective);
    subject.check_owner(&file)?;
    // Only a member of the group may make a program act for the group.
    let keeps_set_group = subject.keeps_set_group(file.gid);
    let mode = if keeps_set_group {
        mode & 0o7777
    } else {
        mode & 0o5777
    };
    apply(
        place,
        &Change {
            mode: Some(mode),
            ..Change::default()
        },
    )
}

fn chown(call: Call<'_>) -> Outcome {
    set_owner(&call.place_here(0, Walk::FOLLOW)?, call.int(1), call.int(2))
}

fn lchown(call: Call<'_>) -> Outcome {
    set_owner(
        &call.place_here(0, Walk::empty())?,
        call.int(1),
        call.int(2),
    )
}

fn fchown(call: Call<'_>) -> Outcome {
    set_owner(&opened_place(&call, 0)?, call.int(1), call.int(2))
}

fn fchownat(call: Call<'_>) -> Outcome {
    let flags = only(call.uint(4), AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH)?;
    set_owner(&call.place(0, 1, walk_of(flags))?, call.int(2), call.int(3))
}

fn set_owner(place: &Path, uid: i32, gid: i32) -> Outcome {
    let chosen = |id: i32| (id != -1).then_some(id as u32);
    let (uid, gid) = (chosen(uid), chosen(gid));
    let file = changing(place)?;
    Subject::current(Who::Effective).check_chown(&file, uid, gid)?;
    let mode = Some(set_ids::mode_after_change(&file)).filter(|&mode| mode != file.mode);
    apply(
        place,
        &Change {
            uid,
            gid,
            mode,
            ..Change::default()
        },
    )
}

/// Times as a call gives them: last read, last write; `None` stays.
type Times = [Option<Timestamp>; 2];

/// The times come first: who leaves both as they are asks for nothing, whatever the path.
fn utimensat(call: Call<'_>) -> Outcome {
    let pairs: Option<[[i64; 2]; 2]> = call.optional_addr(2).map(user::read).transpose()?;
    let all = |nanos: u32| {
        let is = |pair: &[i64; 2]| pair[1] == i64::from(nanos);
        pairs.is_some_and(|pairs| pairs.iter().all(is))
    };
    if all(UTIME_OMIT) {
        return Ok(0);
    }
    let flags = only(call.uint(3), AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH)?;
    let place = match call.optional_addr(1) {
        None if call.int(0) == AT_FDCWD => return Err(Errno::EFAULT),
        None if flags != 0 => return Err(Errno::EINVAL),
        None => opened_place(&call, 0)?,
        Some(_) => call.place(0, 1, walk_of(flags))?,
    };
    match pairs {
        Some([access, modify]) if !all(UTIME_NOW) => {
            set_times(&place, [decode_time(access)?, decode_time(modify)?])
        }
        _ => touch(&place),
    }
}

fn decode_time([seconds, nanos]: [i64; 2]) -> core::result::Result<Option<Timestamp>, Errno> {
    if nanos == i64::from(UTIME_OMIT) {
        return Ok(None);
    }
    if nanos == i64::from(UTIME_NOW) {
        return Ok(Some(Timestamp::now()));
    }
    match u32::try_from(nanos) {
        Ok(nanos @ 0..1_000_000_000) => Ok(Some(Timestamp { seconds, nanos })),
        _ => Err(Errno::EINVAL),
    }
}

fn utimes(call: Call<'_>) -> Outcome {
    let place = call.place_here(0, Walk::FOLLOW)?;
    set_times_micros(&place, call.optional_addr(1))
}

/// Without a path the descriptor's file is meant.
fn futimesat(call: Call<'_>) -> Outcome {
    let place = match call.optional_addr(1) {
        None if call.int(0) == AT_FDCWD => return Err(Errno::EFAULT),
        None => opened_place(&call, 0)?,
        Some(_) => call.place(0, 1, Walk::FOLLOW)?,
    };
    set_times_micros(&place, call.optional_addr(2))
}

/// Two `struct timeval`; without them, now.
fn set_times_micros(place: &Path, at: Option<VirtAddr>) -> Outcome {
    let Some(at) = at else {
        return touch(place);
    };
    let pairs: [[i64; 2]; 2] = user::read(at)?;
    let decode = |[seconds, micros]: [i64; 2]| match u32::try_from(micros) {
        Ok(micros @ 0..1_000_000) => Ok(Some(Timestamp {
            seconds,
            nanos: micros * 1000,
        })),
        _ => Err(Errno::EINVAL),
    };
    set_times(place, [decode(pairs[0])?, decode(pairs[1])?])
}

fn utime(call: Call<'_>) -> Outcome {
    let place = call.place_here(0, Walk::FOLLOW)?;
    let Some(at) = call.optional_addr(1) else {
        return touch(&place);
    };
    let seconds: [i64; 2] = user::read(at)?;
    set_times(
        &place,
        seconds.map(|seconds| Some(Timestamp { seconds, nanos: 0 })),
    )
}

fn set_times(place: &Path, [accessed, modified]: Times) -> Outcome {
    Subject::current(Who::Effective).check_owner(&changing(place)?)?;
    apply(
        place,
        &Change {
            accessed,
            modified,
            ..Change::default()
        },
    )
}

/// Sets both times to now: who may write the file may do that.
fn touch(place: &Path) -> Outcome {
    let file = changing(place)?;
    let subject = Subject::current(Who::Effective);
    subject
        .check_owner(&file)
        .or_else(|_| subject.check(&file, WRITE))?;
    let now = Some(Timestamp::now());
    apply(
        place,
        &Change {
            accessed: now,
            modified: now,
            ..Change::default()
        },
    )
}

fn truncate(call: Call<'_>) -> Outcome {
    let size = u64::try_from(call.arg(1) as i64).map_err(|_| Errno::EINVAL)?;
    let place = call.place_here(0, Walk::FOLLOW)?;
    let file = place.inode().metadata()?;
    match file.kind {
        FileType::Directory => return Err(Errno::EISDIR),
        FileType::Regular => {}
        _ => return Err(Errno::EINVAL),
    }
    place.mount.check_writable()?;
    Subject::current(Who::Effective).check(&file, WRITE)?;
    resize(&place, size)
}

fn ftruncate(call: Call<'_>) -> Outcome {
    let open = call.file(0)?;
    let size = u64::try_from(call.arg(1) as i64).map_err(|_| Errno::EINVAL)?;
    let place = place_of(&open)?;
    if !open.is_writable() || place.inode().kind() != FileType::Regular {
        return Err(Errno::EINVAL);
    }
    resize(place, size)
}

fn resize(place: &Path, size: u64) -> Outcome {
    if size > place.inode().metadata()?.size {
        size_limit::check_growth(size)?;
    }
    set_ids::shed(&**place.inode())?;
    place.inode().truncate(size)?;
    notify::changed(&place.dentry, Mask::MODIFY);
    Ok(0)
}

fn fallocate(call: Call<'_>) -> Outcome {
    let open = call.file(0)?;
    let flags = call.uint(1);
    let (start, len) = (call.arg(2) as i64, call.arg(3) as i64);
    if start < 0 || len <= 0 {
        return Err(Errno::EINVAL);
    }
    let end = start.checked_add(len).ok_or(Errno::EFBIG)?;
    if !open.is_writable() {
        return Err(Errno::EBADF);
    }
    let is_pipe = open.file.pipe_capacity(None).is_some();
    let without_place = if is_pipe {
        Errno::ESPIPE
    } else {
        Errno::ENODEV
    };
    let place = open.path.as_ref().ok_or(without_place)?;
    if place.inode().kind() != FileType::Regular {
        return Err(Errno::ENODEV);
    }
    let punch = flags & FALLOC_FL_PUNCH_HOLE != 0;
    let keep_size = flags & FALLOC_FL_KEEP_SIZE != 0;
    let known = FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE;
    if flags & !known != 0 || punch && !keep_size {
        return Err(Errno::EOPNOTSUPP);
    }
    if !keep_size && end as u64 > place.inode().metadata()?.size {
        size_limit::check_growth(end as u64)?;
    }
    set_ids::shed(&**place.inode())?;
    place
        .inode()
        .allocate(start as u64..end as u64, keep_size, punch)?;
    notify::written(&open);
    Ok(0)
}
