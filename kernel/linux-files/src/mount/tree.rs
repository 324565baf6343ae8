//! open_tree, move_mount, mount_setattr: mounts by descriptor.

use vfs::file::StatusFlags;

use linux_raw_sys::general::*;
use mm::user;
use vfs::mount::{self, Change, open_copy};
use vfs::{MountFlags, OpenHow, Walk};

use super::{Result, check_administrator, propagation_type};
use linux_abi::call::{Arg, Call, Entry, Outcome};
use linux_abi::descriptor::only;
use linux_abi::errno::Errno;
use linux_abi::missing;

/// The calls of this part.
pub const CALLS: &[Entry] = &[
    Entry {
        number: __NR_open_tree,
        name: "open_tree",
        args: &[Arg::DirFd, Arg::Path, Arg::Flags],
        handler: open_tree,
    },
    Entry {
        number: __NR_move_mount,
        name: "move_mount",
        args: &[Arg::DirFd, Arg::Path, Arg::DirFd, Arg::Path, Arg::Flags],
        handler: move_mount,
    },
    Entry {
        number: __NR_mount_setattr,
        name: "mount_setattr",
        args: &[Arg::DirFd, Arg::Path, Arg::Flags, Arg::Address, Arg::Size],
        handler: mount_setattr,
    },
];

/// How a path's flags say to walk.
pub fn walk_to(follow: bool, empty: bool) -> Walk {
    let mut walk = Walk::empty();
    walk.set(Walk::FOLLOW, follow);
    walk.set(Walk::EMPTY, empty);
    walk
}

fn walk_at(flags: u32) -> Walk {
    walk_to(flags & AT_SYMLINK_NOFOLLOW == 0, flags & AT_EMPTY_PATH != 0)
}

fn open_tree(call: Call<'_>) -> Outcome {
    const PATH: u32 = AT_EMPTY_PATH | AT_NO_AUTOMOUNT | AT_SYMLINK_NOFOLLOW;
    let known = PATH | AT_RECURSIVE | OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC;
    let flags = only(call.uint(2), known)?;
    let (recursive, copies) = (flags & AT_RECURSIVE != 0, flags & OPEN_TREE_CLONE != 0);
    if recursive && !copies {
        return Err(Errno::EINVAL);
    }
    if copies {
        check_administrator()?;
    }
    let place = call.place(0, 1, walk_at(flags))?;
    let open = match copies {
        true => open_copy(&place, recursive)?,
        false => vfs::open_path(place, &NAMED)?,
    };
    Ok(call.new_fd(open, flags & OPEN_TREE_CLOEXEC)?)
}

/// As open(2) with O_PATH.
const NAMED: OpenHow = OpenHow {
    status: StatusFlags::PATH,
    ..OpenHow::READ
};

fn move_mount(call: Call<'_>) -> Outcome {
    check_administrator()?;
    let flags = only(call.uint(4), MOVE_MOUNT__MASK)?;
    let has = |flag| flags & flag != 0;
    if has(MOVE_MOUNT_BENEATH) {
        missing::count_option("move_mount", u64::from(MOVE_MOUNT_BENEATH));
        return Err(Errno::EINVAL);
    }
    let from = walk_to(has(MOVE_MOUNT_F_SYMLINKS), has(MOVE_MOUNT_F_EMPTY_PATH));
    let to = walk_to(has(MOVE_MOUNT_T_SYMLINKS), has(MOVE_MOUNT_T_EMPTY_PATH));
    let (from, to) = (call.place(0, 1, from)?, call.place(2, 3, to)?);
    match has(MOVE_MOUNT_SET_GROUP) {
        true => mount::share_group(&from, &to)?,
        false => mount::relocate(&from, to)?,
    }
    Ok(0)
}

/// `MOUNT_ATTR_*` that are flags of a mount.
const ATTRIBUTES: [(u32, MountFlags); 6] = [
    (MOUNT_ATTR_RDONLY, MountFlags::RDONLY),
    (MOUNT_ATTR_NOSUID, MountFlags::NOSUID),
    (MOUNT_ATTR_NODEV, MountFlags::NODEV),
    (MOUNT_ATTR_NOEXEC, MountFlags::NOEXEC),
    (MOUNT_ATTR_NODIRATIME, MountFlags::NODIRATIME),
    (MOUNT_ATTR_NOSYMFOLLOW, MountFlags::NOSYMFOLLOW),
];

/// What a mask of `MOUNT_ATTR_*` says, but for access times.
fn plain_flags(mask: u64) -> Result<MountFlags> {
    let known = ATTRIBUTES
        .iter()
        .fold(MOUNT_ATTR__ATIME, |all, (bit, _)| all | bit);
    if mask & !u64::from(known) != 0 {
        return Err(Errno::EINVAL);
    }
    let set = ATTRIBUTES
        .iter()
        .filter(|(bit, _)| mask & u64::from(*bit) != 0);
    Ok(set.fold(MountFlags::empty(), |all, (_, flag)| all | *flag))
}

/// The `MOUNT_ATTR_*` of a mount.
pub fn attributes_of(flags: MountFlags) -> u64 {
    let set = ATTRIBUTES.iter().filter(|(_, flag)| flags.contains(*flag));
    let times = match flags {
        flags if flags.contains(MountFlags::NOATIME) => MOUNT_ATTR_NOATIME,
        flags if flags.contains(MountFlags::RELATIME) => MOUNT_ATTR_RELATIME,
        _ => MOUNT_ATTR_STRICTATIME,
    };
    u64::from(set.fold(times, |all, (bit, _)| all | bit))
}

/// When access times are set.
fn access_times(mask: u64) -> Result<MountFlags> {
    match mask as u32 & MOUNT_ATTR__ATIME {
        MOUNT_ATTR_RELATIME => Ok(MountFlags::RELATIME),
        MOUNT_ATTR_NOATIME => Ok(MountFlags::NOATIME),
        MOUNT_ATTR_STRICTATIME => Ok(MountFlags::empty()),
        _ => Err(Errno::EINVAL),
    }
}

/// The flags of a new mount.
pub fn attribute_flags(mask: u64) -> Result<MountFlags> {
    Ok(plain_flags(mask)? | access_times(mask)?)
}

fn mount_setattr(call: Call<'_>) -> Outcome {
    let flags = only(
        call.uint(2),
        AT_EMPTY_PATH | AT_NO_AUTOMOUNT | AT_SYMLINK_NOFOLLOW | AT_RECURSIVE,
    )?;
    let wanted = read_attributes(&call)?;
    if wanted == [0; WORDS] {
        return Ok(0);
    }
    let change = decode(&wanted)?;
    let place = call.place(0, 1, walk_at(flags))?;
    mount::change(&place, change, flags & AT_RECURSIVE != 0)?;
    Ok(0)
}

/// The words of struct mount_attr.
const WORDS: usize = MOUNT_ATTR_SIZE_VER0 as usize / 8;

/// Reads struct mount_attr; what a later one has besides must be zero.
fn read_attributes(call: &Call<'_>) -> Result<[u64; WORDS]> {
    let size = call.size(4);
    if size > base::PAGE_BYTES {
        return Err(Errno::E2BIG);
    }
    if size < MOUNT_ATTR_SIZE_VER0 as usize {
        return Err(Errno::EINVAL);
    }
    check_administrator()?;
    let words = user::read(call.addr(3))?;
    for offset in u64::from(MOUNT_ATTR_SIZE_VER0)..size as u64 {
        if user::read::<u8>(call.addr(3) + offset)? != 0 {
            return Err(Errno::E2BIG);
        }
    }
    Ok(words)
}

/// Attributes to set, to clear, propagation; the last word belongs to MOUNT_ATTR_IDMAP, which is
/// refused.
fn decode(&[set, clear, propagation, _]: &[u64; WORDS]) -> Result<Change> {
    let times = u64::from(MOUNT_ATTR__ATIME);
    let mut change = Change {
        set: plain_flags(set)?,
        clear: plain_flags(clear)?,
        propagation: None,
    };
    if clear & times == times {
        change.set |= access_times(set)?;
        change.clear |= MountFlags::NOATIME | MountFlags::RELATIME;
    } else if (set | clear) & times != 0 {
        return Err(Errno::EINVAL);
    }
    if propagation != 0 {
        let flag = u32::try_from(propagation).map_err(|_| Errno::EINVAL)?;
        change.propagation = Some(propagation_type(flag)?);
    }
    Ok(change)
}
