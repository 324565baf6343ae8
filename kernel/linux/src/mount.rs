//! mount, umount2.

use kernel::fs::access::{Subject, Who};
use kernel::fs::{MountFlags, Walk, kinds, mount};
use kernel::{fs, user};
use linux_raw_sys::general::*;

use crate::call::{Arg, Call, Entry, Outcome};
use crate::descriptor::only;
use crate::errno::Errno;
use crate::missing;

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
];

/// The longest name of a kind or a source.
const STRING_BYTES_MAX: usize = 256;
/// Flags that ask for something else than a new mount.
const OTHER_ACTIONS: u32 = MS_REMOUNT | MS_BIND | MS_MOVE;
/// Flags that change how mounts spread; there is one tree, so nothing spreads.
const PROPAGATION: u32 = MS_SHARED | MS_PRIVATE | MS_SLAVE | MS_UNBINDABLE;

/// A string that may be absent.
fn string(call: &Call<'_>, index: usize) -> Result<alloc::vec::Vec<u8>, Errno> {
    match call.optional_addr(index) {
        None => Ok(alloc::vec::Vec::new()),
        Some(at) => Ok(user::read_string(at, STRING_BYTES_MAX)?.ok_or(Errno::EINVAL)?),
    }
}

fn mount(call: Call<'_>) -> Outcome {
    Subject::current(Who::Effective).check_administrator()?;
    let flags = call.uint(3);
    let at = fs::resolve(None, &call.path(1)?, Walk::FOLLOW)?;
    if flags & PROPAGATION != 0 {
        return Ok(0);
    }
    if flags & OTHER_ACTIONS != 0 {
        missing::count_option("mount", u64::from(flags & OTHER_ACTIONS));
        return Err(Errno::EINVAL);
    }
    let (source, kind) = (string(&call, 0)?, string(&call, 2)?);
    let options = string(&call, 4)?;
    let system = kinds::make(&kind, &source, &options)?;
    mount::mount(at, system, &source, MountFlags::from_bits_truncate(flags))?;
    Ok(0)
}

fn umount(call: Call<'_>) -> Outcome {
    Subject::current(Who::Effective).check_administrator()?;
    let flags = only(
        call.uint(1),
        MNT_FORCE | MNT_DETACH | MNT_EXPIRE | UMOUNT_NOFOLLOW,
    )?;
    let mut walk = Walk::empty();
    walk.set(Walk::FOLLOW, flags & UMOUNT_NOFOLLOW == 0);
    let at = call.place_here(0, walk)?;
    mount::unmount(&at, flags & (MNT_DETACH | MNT_FORCE) != 0)?;
    Ok(0)
}
