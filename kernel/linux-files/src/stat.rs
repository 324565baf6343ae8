//! stat and its kin, statx, statfs, access, readlink.

use linux_raw_sys::general::*;
use mm::user;
use sync::{Error, Result};
use vfs::access::{Subject, Who};
use vfs::{
    FileType, Metadata, Mount, MountFlags, Path, Timestamp, Walk, access_times, device_parts,
};

use crate::mount::report;
use linux_abi::call::{Arg, Call, Entry, Outcome};
use linux_abi::descriptor::only;
use linux_abi::errno::Errno;

const PATH_OUT: &[Arg] = &[Arg::Path, Arg::Address];

/// The calls of this family.
pub const CALLS: &[Entry] = &[
    Entry {
        number: __NR_stat,
        name: "stat",
        args: PATH_OUT,
        handler: stat,
    },
    Entry {
        number: __NR_lstat,
        name: "lstat",
        args: PATH_OUT,
        handler: lstat,
    },
    Entry {
        number: __NR_fstat,
        name: "fstat",
        args: &[Arg::Fd, Arg::Address],
        handler: fstat,
    },
    Entry {
        number: __NR_newfstatat,
        name: "newfstatat",
        args: &[Arg::DirFd, Arg::Path, Arg::Address, Arg::Flags],
        handler: newfstatat,
    },
    Entry {
        number: __NR_statx,
        name: "statx",
        args: &[Arg::DirFd, Arg::Path, Arg::Flags, Arg::Flags, Arg::Address],
        handler: statx,
    },
    Entry {
        number: __NR_statfs,
        name: "statfs",
        args: PATH_OUT,
        handler: statfs,
    },
    Entry {
        number: __NR_fstatfs,
        name: "fstatfs",
        args: &[Arg::Fd, Arg::Address],
        handler: fstatfs,
    },
    Entry {
        number: __NR_access,
        name: "access",
        args: &[Arg::Path, Arg::Flags],
        handler: access,
    },
    Entry {
        number: __NR_faccessat,
        name: "faccessat",
        args: &[Arg::DirFd, Arg::Path, Arg::Flags],
        handler: faccessat,
    },
    Entry {
        number: __NR_faccessat2,
        name: "faccessat2",
        args: &[Arg::DirFd, Arg::Path, Arg::Flags, Arg::Flags],
        handler: faccessat2,
    },
    Entry {
        number: __NR_readlink,
        name: "readlink",
        args: &[Arg::Path, Arg::Address, Arg::Size],
        handler: readlink,
    },
    Entry {
        number: __NR_readlinkat,
        name: "readlinkat",
        args: &[Arg::DirFd, Arg::Path, Arg::Address, Arg::Size],
        handler: readlinkat,
    },
];

fn stat(call: Call<'_>) -> Outcome {
    let metadata = call.place_here(0, Walk::FOLLOW)?.inode().metadata()?;
    store(&call, 1, &metadata)
}

fn lstat(call: Call<'_>) -> Outcome {
    let metadata = call.place_here(0, Walk::empty())?.inode().metadata()?;
    store(&call, 1, &metadata)
}

fn fstat(call: Call<'_>) -> Outcome {
    let metadata = call.open_file(0)?.metadata()?;
    store(&call, 1, &metadata)
}

fn newfstatat(call: Call<'_>) -> Outcome {
    let (metadata, _) = metadata_at(&call, call.uint(3))?;
    store(&call, 2, &metadata)
}

/// What the descriptor in argument 0 and the path in argument 1 name, by `AT_*` flags, and where
/// that is in the tree.
fn metadata_at(
    call: &Call<'_>,
    flags: u32,
) -> core::result::Result<(Metadata, Option<Path>), Errno> {
    let known = AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT | AT_EMPTY_PATH | AT_STATX_SYNC_TYPE;
    let flags = only(flags, known)?;
    // A null pointer stands for the empty path.
    let empty = flags & AT_EMPTY_PATH != 0;
    let path = match call.optional_addr(1) {
        None if empty => alloc::vec::Vec::new(),
        _ => call.path(1)?,
    };
    if path.is_empty() && empty && call.int(0) != AT_FDCWD {
        let open = call.open_file(0)?;
        return Ok((open.metadata()?, open.path.clone()));
    }
    let mut walk = walk_of(flags);
    walk.set(Walk::EMPTY, empty);
    let start = call.start(0, &path)?;
    let place = vfs::resolve(start.as_ref(), &path, walk)?;
    Ok((place.inode().metadata()?, Some(place)))
}

/// The walk that `AT_SYMLINK_NOFOLLOW` and `AT_EMPTY_PATH` ask for.
pub fn walk_of(flags: u32) -> Walk {
    let mut walk = Walk::empty();
    walk.set(Walk::FOLLOW, flags & AT_SYMLINK_NOFOLLOW == 0);
    walk.set(Walk::EMPTY, flags & AT_EMPTY_PATH != 0);
    walk
}

/// Stores struct stat of x86-64 (asm/stat.h): 144 bytes.
#[inline]
fn store(call: &Call<'_>, index: usize, of: &Metadata) -> Outcome {
    let mode = u64::from(of.full_mode());
    let owner = u64::from(of.uid);
    let words: [u64; 18] = [
        of.device,
        of.number,
        u64::from(of.links),
        mode | owner << 32,
        u64::from(of.gid),
        of.node,
        of.size,
        u64::from(of.block_bytes()),
        of.blocks,
        of.accessed.seconds as u64,
        u64::from(of.accessed.nanos),
        of.modified.seconds as u64,
        u64::from(of.modified.nanos),
        of.changed.seconds as u64,
        u64::from(of.changed.nanos),
        0,
        0,
        0,
    ];
    user::write(call.addr(index), words)?;
    Ok(0)
}

/// struct statx (linux/stat.h): 256 bytes, as 64-bit words.
fn statx(call: Call<'_>) -> Outcome {
    let (of, place) = metadata_at(&call, call.uint(2))?;
    let is_contradictory = call.uint(2) & AT_STATX_SYNC_TYPE == AT_STATX_SYNC_TYPE;
    if call.uint(3) & STATX__RESERVED != 0 || is_contradictory {
        return Err(Errno::EINVAL);
    }
    let time = |time: Timestamp| [time.seconds as u64, u64::from(time.nanos)];
    let pair = |(low, high): (u32, u32)| u64::from(low) | u64::from(high) << 32;
    let mut words = [0u64; 32];
    words[0] = pair((STATX_BASIC_STATS | STATX_BTIME, of.block_bytes()));
    words[2] = pair((of.links, of.uid));
    words[3] = pair((of.gid, of.full_mode()));
    words[4] = of.number;
    words[5] = of.size;
    words[6] = of.blocks;
    let times = [of.accessed, of.created, of.changed, of.modified];
    for (slot, value) in words[8..16].chunks_exact_mut(2).zip(times) {
        slot.copy_from_slice(&time(value));
    }
    words[16] = pair(device_parts(of.node));
    words[17] = pair(device_parts(of.device));
    if let Some(place) = place {
        add_mount(&mut words, &place, call.uint(3));
    }
    user::write(call.addr(4), words)?;
    Ok(0)
}

/// What struct statx says of the mount.
fn add_mount(words: &mut [u64; 32], place: &Path, wanted: u32) {
    let is_unique = wanted & STATX_MNT_ID_UNIQUE != 0;
    let told = match is_unique {
        true => STATX_MNT_ID_UNIQUE,
        false => STATX_MNT_ID,
    };
    words[0] |= u64::from(told);
    words[1] = u64::from(STATX_ATTR_MOUNT_ROOT) * u64::from(place.is_mount_top());
    words[7] = u64::from(STATX_ATTR_MOUNT_ROOT);
    words[18] = match is_unique {
        true => report::unique(&place.mount),
        false => u64::from(place.mount.id),
    };
}

fn statfs(call: Call<'_>) -> Outcome {
    let place = call.place_here(0, Walk::FOLLOW)?;
    store_usage(&call, &place.mount)
}

fn fstatfs(call: Call<'_>) -> Outcome {
    let open = call.open_file(0)?;
    match &open.path {
        Some(path) => store_usage(&call, &path.mount),
        None => store_nameless(&call, open.metadata()?.kind),
    }
}

/// What Linux's file systems of things without a name say: those of pipes, of sockets, of all
/// else.
fn store_nameless(call: &Call<'_>, kind: FileType) -> Outcome {
    const PIPES: u64 = 0x5049_5045;
    const SOCKETS: u64 = 0x534f_434b;
    const OTHERS: u64 = 0x0904_1934;
    let mut words = [0u64; 15];
    words[0] = match kind {
        FileType::Fifo => PIPES,
        FileType::Socket => SOCKETS,
        _ => OTHERS,
    };
    words[1] = base::PAGE_BYTES as u64;
    words[8] = vfs::NAME_BYTES_MAX as u64;
    words[9] = words[1];
    words[10] = ST_VALID;
    user::write(call.addr(1), words)?;
    Ok(0)
}

/// Stores struct statfs of x86-64 (asm-generic/statfs.h): 120 bytes.
fn store_usage(call: &Call<'_>, mount: &Mount) -> Outcome {
    let usage = mount.block.system.usage();
    let number = u64::from(mount.block.id);
    let name_max = vfs::NAME_BYTES_MAX as u64;
    let words: [u64; 15] = [
        usage.magic,
        usage.block_bytes,
        usage.blocks,
        usage.free_blocks,
        usage.free_blocks,
        usage.inodes,
        usage.free_inodes,
        number,
        name_max,
        usage.block_bytes,
        statfs_flags(mount),
        0,
        0,
        0,
        0,
    ];
    user::write(call.addr(1), words)?;
    Ok(0)
}

/// The flags of statfs(2) are there.
const ST_VALID: u64 = 0x20;

/// `f_flags`: `ST_*` of statfs(2).
fn statfs_flags(mount: &Mount) -> u64 {
    const FLAGS: [(MountFlags, u64); 7] = [
        (MountFlags::NOSUID, 2),
        (MountFlags::NODEV, 4),
        (MountFlags::NOEXEC, 8),
        (MountFlags::NOATIME, 0x400),
        (MountFlags::NODIRATIME, 0x800),
        (MountFlags::RELATIME, 0x1000),
        (MountFlags::NOSYMFOLLOW, 0x2000),
    ];
    let set = FLAGS.iter().filter(|(flag, _)| mount.has(*flag));
    set.fold(
        ST_VALID | u64::from(mount.is_read_only()),
        |all, (_, bit)| all | bit,
    )
}

fn access(call: Call<'_>) -> Outcome {
    check(call.place_here(0, Walk::FOLLOW)?, call.uint(1), Who::Real)
}

fn faccessat(call: Call<'_>) -> Outcome {
    check(call.place(0, 1, Walk::FOLLOW)?, call.uint(2), Who::Real)
}

fn faccessat2(call: Call<'_>) -> Outcome {
    let flags = only(
        call.uint(3),
        AT_EACCESS | AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH,
    )?;
    let who = if flags & AT_EACCESS != 0 {
        Who::Effective
    } else {
        Who::Real
    };
    check(call.place(0, 1, walk_of(flags))?, call.uint(2), who)
}

fn check(place: Path, wanted: u32, who: Who) -> Outcome {
    let wanted = only(wanted, R_OK | W_OK | X_OK)?;
    let metadata = place.inode().metadata()?;
    let on_disk = matches!(metadata.kind, FileType::Regular | FileType::Directory);
    if wanted & W_OK != 0 && on_disk {
        place.mount.check_writable()?;
    }
    let executes = wanted & X_OK != 0 && metadata.kind == FileType::Regular;
    if executes && place.mount.has(MountFlags::NOEXEC) {
        return Err(Errno::EACCES);
    }
    Subject::current(who).check(&metadata, wanted)?;
    Ok(0)
}

fn readlink(call: Call<'_>) -> Outcome {
    store_link(&call, &call.place_here(0, Walk::empty())?, 1)
}

fn readlinkat(call: Call<'_>) -> Outcome {
    store_link(&call, &call.place(0, 1, Walk::EMPTY)?, 2)
}

/// Stores a link's text, cut to the buffer, without a zero.
fn store_link(call: &Call<'_>, place: &Path, index: usize) -> Outcome {
    let room = match call.int(index + 1) {
        1.. => call.size(index + 1),
        _ => return Err(Errno::EINVAL),
    };
    let text = link_text(place)?;
    let taken = text.get(..room).unwrap_or(&text);
    user::copy_out(taken, call.addr(index))?;
    Ok(taken.len())
}

fn link_text(place: &Path) -> Result<alloc::vec::Vec<u8>> {
    match place.inode().kind() {
        FileType::Symlink => {
            let text = place.inode().read_link()?;
            access_times::note(place);
            Ok(text)
        }
        _ => Err(Error::Invalid),
    }
}
