//! mount, umount2, pivot_root; `configure` and `tree` have the calls by descriptor, `report` tells
//! what is mounted.

pub mod configure;
pub mod report;
pub mod tree;

use alloc::vec::Vec;

use linux_raw_sys::general::*;
use mm::user;
use vfs::access::{Subject, Who};
use vfs::mount::{Change, PropagationType, Unmount};
use vfs::{MountFlags, PATH_BYTES_MAX, Path, Walk, kinds, mount};

use linux_abi::call::{Arg, Call, Entry, Outcome};
use linux_abi::descriptor::only;
use linux_abi::errno::Errno;

/// The calls of this family.
pub const CALLS: &[Entry] = &[
    Entry {
        number: __NR_mount,
        name: "mount",
        args: &[Arg::Path, Arg::Path, Arg::Path, Arg::Flags, Arg::Address],
        handler: mount,
    },
    Entry {
        number: __NR_umount2,
        name: "umount2",
        args: &[Arg::Path, Arg::Flags],
        handler: umount,
    },
    Entry {
        number: __NR_pivot_root,
        name: "pivot_root",
        args: &[Arg::Path, Arg::Path],
        handler: pivot_root,
    },
];

/// The longest options (the page that Linux copies).
const OPTIONS_BYTES_MAX: usize = 4096;
/// What old programs put before the flags, and where (mount(2)).
const MAGIC: u32 = 0xc0ed_0000;
const MAGIC_MASK: u32 = 0xffff_0000;
/// Flags that change how mounts spread.
const PROPAGATION: u32 = MS_SHARED | MS_PRIVATE | MS_SLAVE | MS_UNBINDABLE;
/// Flags that say when access times are set.
const ACCESS_TIMES: u32 = MS_NOATIME | MS_NODIRATIME | MS_RELATIME | MS_STRICTATIME;

type Result<T> = core::result::Result<T, Errno>;

/// A string that may be absent.
fn string(call: &Call<'_>, index: usize, bytes_max: usize) -> Result<Option<Vec<u8>>> {
    match call.optional_addr(index) {
        None => Ok(None),
        Some(at) => user::read_string(at, bytes_max)?
            .ok_or(Errno::EINVAL)
            .map(Some),
    }
}

/// Only administrators change the tree.
pub fn check_administrator() -> sync::Result<()> {
    Subject::current(Who::Effective).check_administrator()
}

/// The four strings of mount(2) are read before anything is looked at.
struct Strings {
    source: Option<Vec<u8>>,
    kind: Option<Vec<u8>>,
    options: Vec<u8>,
}

fn mount(call: Call<'_>) -> Outcome {
    let strings = Strings {
        kind: string(&call, 2, PATH_BYTES_MAX)?,
        source: string(&call, 0, PATH_BYTES_MAX)?,
        options: string(&call, 4, OPTIONS_BYTES_MAX)?.unwrap_or_default(),
    };
    let at = call.place_here(1, Walk::FOLLOW)?.enter_mounts();
    check_administrator()?;
    let mut flags = call.uint(3);
    if flags & MAGIC_MASK == MAGIC {
        flags &= !MAGIC_MASK;
    }
    match flags {
        _ if flags & (MS_REMOUNT | MS_BIND) == MS_REMOUNT | MS_BIND => remount(&at, flags),
        _ if flags & MS_REMOUNT != 0 => remount_all(&at, flags, &strings),
        _ if flags & MS_BIND != 0 => bind(at, flags, strings.source),
        _ if flags & PROPAGATION != 0 => set_propagation(&at, flags),
        _ if flags & MS_MOVE != 0 => relocate(at, strings.source),
        _ => mount_new(at, flags, strings),
    }
}

/// What the flags of mount(2) say about a mount; access times are relative by default.
fn mount_flags(flags: u32) -> MountFlags {
    let mut set = MountFlags::from_bits_truncate(flags) & MountFlags::CHANGEABLE;
    set.set(
        MountFlags::RELATIME,
        flags & (MS_NOATIME | MS_STRICTATIME) == 0,
    );
    set
}

fn mount_new(at: Path, flags: u32, strings: Strings) -> Outcome {
    let kind = strings.kind.ok_or(Errno::EINVAL)?;
    let source = strings.source.as_deref().unwrap_or(b"none");
    let system = kinds::make(&kind, source, &strings.options)?;
    mount::mount(at, system, source, mount_flags(flags))?;
    Ok(0)
}

/// MS_REMOUNT with MS_BIND: this mount alone changes.
fn remount(at: &Path, flags: u32) -> Outcome {
    let mount = mount::check_top(at)?;
    let mut wanted = mount_flags(flags) | mount.flags() & MountFlags::UNBINDABLE;
    if flags & ACCESS_TIMES == 0 {
        wanted.remove(MountFlags::ACCESS_TIMES);
        wanted |= mount.flags() & MountFlags::ACCESS_TIMES;
    }
    mount.set_flags(wanted)?;
    Ok(0)
}

/// MS_REMOUNT: the file system changes too.
fn remount_all(at: &Path, flags: u32, strings: &Strings) -> Outcome {
    let mount = mount::check_top(at)?;
    mount.block.system.reconfigure(&strings.options)?;
    mount.block.set_read_only(flags & MS_RDONLY != 0)?;
    remount(at, flags)
}

fn source_place(source: Option<Vec<u8>>) -> Result<Path> {
    let source = source.filter(|name| !name.is_empty());
    Ok(vfs::resolve(
        None,
        &source.ok_or(Errno::EINVAL)?,
        Walk::FOLLOW,
    )?)
}

fn bind(at: Path, flags: u32, source: Option<Vec<u8>>) -> Outcome {
    let from = source_place(source)?;
    mount::bind(&from, at, flags & MS_REC != 0)?;
    Ok(0)
}

fn relocate(at: Path, source: Option<Vec<u8>>) -> Outcome {
    mount::relocate(&source_place(source)?, at)?;
    Ok(0)
}

/// What one of these flags makes of a mount.
fn propagation_type(flag: u32) -> Result<PropagationType> {
    match flag {
        MS_SHARED => Ok(PropagationType::Shared),
        MS_PRIVATE => Ok(PropagationType::Private),
        MS_SLAVE => Ok(PropagationType::Slave),
        MS_UNBINDABLE => Ok(PropagationType::Unbindable),
        _ => Err(Errno::EINVAL),
    }
}

fn set_propagation(at: &Path, flags: u32) -> Outcome {
    let change = Change {
        set: MountFlags::empty(),
        clear: MountFlags::empty(),
        propagation: Some(propagation_type(flags & !(MS_REC | MS_SILENT))?),
    };
    mount::change(at, change, flags & MS_REC != 0)?;
    Ok(0)
}

fn umount(call: Call<'_>) -> Outcome {
    let flags = only(
        call.uint(1),
        MNT_FORCE | MNT_DETACH | MNT_EXPIRE | UMOUNT_NOFOLLOW,
    )?;
    let mut walk = Walk::UNMOUNT;
    walk.set(Walk::FOLLOW, flags & UMOUNT_NOFOLLOW == 0);
    let at = call.place_here(0, walk)?;
    check_administrator()?;
    let how = match flags & (MNT_FORCE | MNT_DETACH | MNT_EXPIRE) {
        MNT_EXPIRE => Unmount::Expired,
        flags if flags & MNT_EXPIRE != 0 => return Err(Errno::EINVAL),
        flags if flags & MNT_DETACH != 0 => Unmount::Lazily,
        _ => Unmount::Unused,
    };
    mount::unmount(&at, how)?;
    Ok(0)
}

fn pivot_root(call: Call<'_>) -> Outcome {
    check_administrator()?;
    let walk = Walk::FOLLOW | Walk::DIRECTORY;
    let new = call.place_here(0, walk)?;
    let put_old = call.place_here(1, walk)?;
    mount::pivot_root(&new, put_old)?;
    Ok(0)
}
