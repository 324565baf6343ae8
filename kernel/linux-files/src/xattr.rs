//! Extended attributes (xattr(7)): in memory's file system, and of the host's files by virtiofs; elsewhere there are none.

use alloc::vec::Vec;

use base::VirtAddr;
use cred::Capability;
use linux_raw_sys::general::*;
use mm::user;
use sync::{Error, Result};
use vfs::access::{READ, Subject, WRITE, Who};
use vfs::extended::{Expect, Extended, LIST_BYTES_MAX, NAME_BYTES_MAX, VALUE_BYTES_MAX};
use vfs::notify::{self, Mask};
use vfs::{Change, FileType, Path, Walk};

use linux_abi::call::{Arg, Call, Entry, Outcome};
use linux_abi::errno::Errno;

const BY_PATH: &[Arg] = &[Arg::Path, Arg::Path, Arg::Address, Arg::Size];
const BY_FD: &[Arg] = &[Arg::Fd, Arg::Path, Arg::Address, Arg::Size];
/// The bit of a directory in which only owners change things.
const STICKY: u32 = 0o1000;

/// The calls of this family.
pub const CALLS: &[Entry] = &[
    Entry {
        number: __NR_setxattr,
        name: "setxattr",
        args: BY_PATH,
        handler: |call| set(&call, Named::Target),
    },
    Entry {
        number: __NR_lsetxattr,
        name: "lsetxattr",
        args: BY_PATH,
        handler: |call| set(&call, Named::Link),
    },
    Entry {
        number: __NR_fsetxattr,
        name: "fsetxattr",
        args: BY_FD,
        handler: |call| set(&call, Named::Descriptor),
    },
    Entry {
        number: __NR_getxattr,
        name: "getxattr",
        args: BY_PATH,
        handler: |call| get(&call, Named::Target),
    },
    Entry {
        number: __NR_lgetxattr,
        name: "lgetxattr",
        args: BY_PATH,
        handler: |call| get(&call, Named::Link),
    },
    Entry {
        number: __NR_fgetxattr,
        name: "fgetxattr",
        args: BY_FD,
        handler: |call| get(&call, Named::Descriptor),
    },
    Entry {
        number: __NR_listxattr,
        name: "listxattr",
        args: BY_PATH,
        handler: |call| list(&call, Named::Target),
    },
    Entry {
        number: __NR_llistxattr,
        name: "llistxattr",
        args: BY_PATH,
        handler: |call| list(&call, Named::Link),
    },
    Entry {
        number: __NR_flistxattr,
        name: "flistxattr",
        args: BY_FD,
        handler: |call| list(&call, Named::Descriptor),
    },
    Entry {
        number: __NR_removexattr,
        name: "removexattr",
        args: BY_PATH,
        handler: |call| remove(&call, Named::Target),
    },
    Entry {
        number: __NR_lremovexattr,
        name: "lremovexattr",
        args: BY_PATH,
        handler: |call| remove(&call, Named::Link),
    },
    Entry {
        number: __NR_fremovexattr,
        name: "fremovexattr",
        args: BY_FD,
        handler: |call| remove(&call, Named::Descriptor),
    },
    Entry {
        number: __NR_name_to_handle_at,
        name: "name_to_handle_at",
        args: &[
            Arg::DirFd,
            Arg::Path,
            Arg::Address,
            Arg::Address,
            Arg::Flags,
        ],
        handler: refuse,
    },
];

/// How a call names its file.
#[derive(Clone, Copy)]
enum Named {
    /// By a path, whose last link is followed.
    Target,
    /// By a path, whose last link is meant itself.
    Link,
    /// By a descriptor.
    Descriptor,
}

/// Who may do what with a name (xattr(7)).
#[derive(Clone, Copy, PartialEq, Eq)]
enum Space {
    /// Whoever may read or write the file; only files and directories have them.
    User,
    /// Administrators; nobody else sees them.
    Trusted,
    /// Everybody sees them, administrators set them.
    Security,
}

fn refuse(_call: Call<'_>) -> Outcome {
    Err(Errno::EOPNOTSUPP)
}

fn place(call: &Call<'_>, named: Named) -> Result<Path> {
    match named {
        Named::Target => call.place_here(0, Walk::FOLLOW),
        Named::Link => call.place_here(0, Walk::empty()),
        Named::Descriptor => {
            let open = call.file(0)?;
            open.path.clone().ok_or(Error::Unsupported)
        }
    }
}

/// ERANGE for a name that is empty or too long.
fn name(call: &Call<'_>) -> Result<Vec<u8>> {
    let name = user::read_string(call.addr(1), NAME_BYTES_MAX + 1)?;
    name.filter(|name| !name.is_empty())
        .ok_or(Error::OutOfRange)
}

/// Names of access control lists and of file capabilities are none that we have: what they
/// say would not hold.
fn space_of(name: &[u8]) -> Result<Space> {
    let has_rest = |prefix: &[u8]| {
        name.strip_prefix(prefix)
            .is_some_and(|rest| !rest.is_empty())
    };
    match name {
        b"security.capability" => Err(Error::Unsupported),
        _ if has_rest(b"user.") => Ok(Space::User),
        _ if has_rest(b"trusted.") => Ok(Space::Trusted),
        _ if has_rest(b"security.") => Ok(Space::Security),
        _ => Err(Error::Unsupported),
    }
}

fn is_administrator(call: &Call<'_>) -> bool {
    call.thread
        .credentials
        .with(|who| who.has(Capability::SysAdmin))
}

/// The inode's attributes, if the caller may do with `name` what `wanted` (bits of access(2))
/// says.
fn checked<'a>(
    call: &Call<'_>,
    place: &'a Path,
    name: &[u8],
    wanted: u32,
) -> Result<&'a dyn Extended> {
    let space = space_of(name)?;
    let writes = wanted == WRITE;
    if writes {
        place.mount.check_writable()?;
    }
    let file = place.inode().metadata()?;
    let is_plain = matches!(file.kind, FileType::Regular | FileType::Directory);
    let refused = if writes {
        Error::NotPermitted
    } else {
        Error::NoData
    };
    match space {
        Space::User if !is_plain => return Err(refused),
        Space::User => {
            let subject = Subject::current(Who::Effective);
            if writes && file.kind == FileType::Directory && file.mode & STICKY != 0 {
                subject.check_owner(&file)?;
            }
            subject.check(&file, wanted)?;
        }
        Space::Trusted if !is_administrator(call) => return Err(refused),
        Space::Security if writes && !is_administrator(call) => return Err(refused),
        Space::Trusted | Space::Security => {}
    }
    if writes {
        place.inode().prepare_change()?;
    }
    place.inode().extended().ok_or(Error::Unsupported)
}

fn set(call: &Call<'_>, named: Named) -> Outcome {
    let expect = match call.uint(4) {
        0 => Expect::Any,
        XATTR_CREATE => Expect::Absent,
        XATTR_REPLACE => Expect::Present,
        _ => return Err(Errno::EINVAL),
    };
    let (name, len) = (name(call)?, call.size(3));
    if len > VALUE_BYTES_MAX {
        return Err(Errno::E2BIG);
    }
    let mut value = Vec::new();
    value.try_reserve_exact(len).map_err(|_| Errno::ENOMEM)?;
    value.resize(len, 0);
    user::copy_in(call.addr(2), &mut value)?;
    let place = place(call, named)?;
    checked(call, &place, &name, WRITE)?.set(&name, &value, expect)?;
    told(&place)
}

fn remove(call: &Call<'_>, named: Named) -> Outcome {
    let name = name(call)?;
    let place = place(call, named)?;
    checked(call, &place, &name, WRITE)?.remove(&name)?;
    told(&place)
}

/// The inode has changed.
fn told(place: &Path) -> Outcome {
    place.inode().change(&Change::default())?;
    notify::changed(&place.dentry, Mask::ATTRIB);
    Ok(0)
}

fn get(call: &Call<'_>, named: Named) -> Outcome {
    let name = name(call)?;
    let place = place(call, named)?;
    let value = checked(call, &place, &name, READ)?.get(&name)?;
    give(&value, call.addr(2), call.size(3))
}

fn list(call: &Call<'_>, named: Named) -> Outcome {
    let place = place(call, named)?;
    let Some(attributes) = place.inode().extended() else {
        return Ok(0);
    };
    let sees_all = is_administrator(call);
    let shows = |name: &[u8]| sees_all || space_of(name) != Ok(Space::Trusted);
    let all = attributes.list()?;
    let mut names = Vec::new();
    names
        .try_reserve_exact(all.len())
        .map_err(|_| Errno::ENOMEM)?;
    for name in all.split_inclusive(|&byte| byte == 0) {
        if shows(name.strip_suffix(&[0]).unwrap_or(name)) {
            names.extend_from_slice(name);
        }
    }
    if names.len() > LIST_BYTES_MAX {
        return Err(Errno::E2BIG);
    }
    give(&names, call.addr(1), call.size(2))
}

/// Stores what there is where there is room for it; no room asks for the length only.
fn give(bytes: &[u8], at: VirtAddr, room: usize) -> Outcome {
    match room {
        0 => Ok(bytes.len()),
        room if room < bytes.len() => Err(Errno::ERANGE),
        _ => {
            user::copy_out(bytes, at)?;
            Ok(bytes.len())
        }
    }
}
