//! Directories and names: getdents64, mkdir, unlink, rename, link, symlink, mknod, and
//! where a program stands (chdir, getcwd, chroot, umask).

use alloc::vec::Vec;

use linux_raw_sys::general::*;
use mm::user;
use vfs::access::{EXECUTE, Subject, Who};
use vfs::names::{self, Replace, Wanted};
use vfs::{self, FileType, LastComponent, Path, Walk, directory};

use linux_abi::call::{Arg, Call, Entry, Outcome};
use linux_abi::descriptor::only;
use linux_abi::errno::Errno;

const PATH: &[Arg] = &[Arg::Path];
const PATHS: &[Arg] = &[Arg::Path, Arg::Path];
const AT_PATHS: &[Arg] = &[Arg::DirFd, Arg::Path, Arg::DirFd, Arg::Path, Arg::Flags];

/// The calls of this family.
pub const CALLS: &[Entry] = &[
    Entry {
        number: __NR_getdents,
        name: "getdents",
        args: &[Arg::Fd, Arg::Address, Arg::Size],
        handler: |call| list(&call, KindAt::End),
    },
    Entry {
        number: __NR_getdents64,
        name: "getdents64",
        args: &[Arg::Fd, Arg::Address, Arg::Size],
        handler: |call| list(&call, KindAt::Header),
    },
    Entry {
        number: __NR_mkdir,
        name: "mkdir",
        args: &[Arg::Path, Arg::Mode],
        handler: mkdir,
    },
    Entry {
        number: __NR_mkdirat,
        name: "mkdirat",
        args: &[Arg::DirFd, Arg::Path, Arg::Mode],
        handler: mkdirat,
    },
    Entry {
        number: __NR_mknod,
        name: "mknod",
        args: &[Arg::Path, Arg::Mode, Arg::Int],
        handler: mknod,
    },
    Entry {
        number: __NR_mknodat,
        name: "mknodat",
        args: &[Arg::DirFd, Arg::Path, Arg::Mode, Arg::Int],
        handler: mknodat,
    },
    Entry {
        number: __NR_rmdir,
        name: "rmdir",
        args: PATH,
        handler: rmdir,
    },
    Entry {
        number: __NR_unlink,
        name: "unlink",
        args: PATH,
        handler: unlink,
    },
    Entry {
        number: __NR_unlinkat,
        name: "unlinkat",
        args: &[Arg::DirFd, Arg::Path, Arg::Flags],
        handler: unlinkat,
    },
    Entry {
        number: __NR_rename,
        name: "rename",
        args: PATHS,
        handler: rename,
    },
    Entry {
        number: __NR_renameat,
        name: "renameat",
        args: AT_PATHS,
        handler: renameat,
    },
    Entry {
        number: __NR_renameat2,
        name: "renameat2",
        args: AT_PATHS,
        handler: renameat2,
    },
    Entry {
        number: __NR_link,
        name: "link",
        args: PATHS,
        handler: link,
    },
    Entry {
        number: __NR_linkat,
        name: "linkat",
        args: AT_PATHS,
        handler: linkat,
    },
    Entry {
        number: __NR_symlink,
        name: "symlink",
        args: PATHS,
        handler: symlink,
    },
    Entry {
        number: __NR_symlinkat,
        name: "symlinkat",
        args: &[Arg::Path, Arg::DirFd, Arg::Path],
        handler: symlinkat,
    },
    Entry {
        number: __NR_chdir,
        name: "chdir",
        args: PATH,
        handler: chdir,
    },
    Entry {
        number: __NR_fchdir,
        name: "fchdir",
        args: &[Arg::Fd],
        handler: fchdir,
    },
    Entry {
        number: __NR_chroot,
        name: "chroot",
        args: PATH,
        handler: chroot,
    },
    Entry {
        number: __NR_getcwd,
        name: "getcwd",
        args: &[Arg::Address, Arg::Size],
        handler: getcwd,
    },
    Entry {
        number: __NR_umask,
        name: "umask",
        args: &[Arg::Mode],
        handler: umask,
    },
];

/// Bytes of entries gathered in one call, however large the buffer.
const LISTING_BYTES_MAX: usize = 32 << 10;
/// Bytes of struct linux_dirent64 before its name; of the older one with the last byte.
const DIRENT_HEADER_BYTES: usize = 19;

/// Where an entry says what it names.
#[derive(Clone, Copy, PartialEq, Eq)]
enum KindAt {
    /// Before the name (struct linux_dirent64).
    Header,
    /// In its last byte (struct linux_dirent, of the older call).
    End,
}

fn list(call: &Call<'_>, kind: KindAt) -> Outcome {
    let open = call.file(0)?;
    let room = call.size(2).min(LISTING_BYTES_MAX);
    let mut bytes: Vec<u8> = Vec::new();
    let mut refused = false;
    directory::list(&open, &mut |entry| {
        let len = (DIRENT_HEADER_BYTES + entry.name.len() + 1).next_multiple_of(8);
        if bytes.len() + len > room {
            refused = true;
            return false;
        }
        let end = bytes.len() + len;
        bytes.extend_from_slice(&entry.number.to_ne_bytes());
        bytes.extend_from_slice(&entry.next.to_ne_bytes());
        bytes.extend_from_slice(&(len as u16).to_ne_bytes());
        if kind == KindAt::Header {
            bytes.push(entry.kind.dirent());
        }
        bytes.extend_from_slice(entry.name);
        bytes.resize(end, 0);
        if let (KindAt::End, Some(last)) = (kind, bytes.last_mut()) {
            *last = entry.kind.dirent();
        }
        true
    })?;
    if bytes.is_empty() && refused {
        return Err(Errno::EINVAL);
    }
    user::copy_out(&bytes, call.addr(1))?;
    Ok(bytes.len())
}

fn mkdir(call: Call<'_>) -> Outcome {
    make(
        &call.parent_here(0)?,
        &Wanted::new(FileType::Directory, call.uint(1) & 0o1777),
    )
}

fn mkdirat(call: Call<'_>) -> Outcome {
    make(
        &call.parent_of(0, 1)?,
        &Wanted::new(FileType::Directory, call.uint(2) & 0o1777),
    )
}

fn make(component: &LastComponent, wanted: &Wanted<'_>) -> Outcome {
    names::create(component, wanted)?;
    Ok(0)
}

fn mknod(call: Call<'_>) -> Outcome {
    make_node(&call.parent_here(0)?, call.uint(1), call.uint(2))
}

fn mknodat(call: Call<'_>) -> Outcome {
    make_node(&call.parent_of(0, 1)?, call.uint(2), call.uint(3))
}

fn make_node(component: &LastComponent, mode: u32, device: u32) -> Outcome {
    let kind = FileType::from_mode(mode).ok_or(Errno::EINVAL)?;
    let mut wanted = Wanted::new(kind, mode & 0o7777);
    match kind {
        FileType::Directory => return Err(Errno::EPERM),
        FileType::Symlink => return Err(Errno::EINVAL),
        FileType::CharDevice | FileType::BlockDevice => {
            Subject::current(Who::Effective).check_mknod()?;
            wanted.device = u64::from(device);
        }
        _ => {}
    }
    make(component, &wanted)
}

fn rmdir(call: Call<'_>) -> Outcome {
    remove_directory(call.parent_here(0)?, &call.path(0)?)
}

/// A path that ends in `.` or `..` has answers of its own.
fn remove_directory(component: LastComponent, path: &[u8]) -> Outcome {
    if component.name.is_empty() {
        let last = path
            .rsplit(|byte| *byte == b'/')
            .find(|part| !part.is_empty());
        return Err(match last {
            Some(b".") => Errno::EINVAL,
            Some(b"..") => Errno::ENOTEMPTY,
            _ => Errno::EBUSY,
        });
    }
    names::rmdir(&component)?;
    Ok(0)
}

fn unlink(call: Call<'_>) -> Outcome {
    names::unlink(&call.parent_here(0)?)?;
    Ok(0)
}

fn unlinkat(call: Call<'_>) -> Outcome {
    let flags = only(call.uint(2), AT_REMOVEDIR)?;
    let component = call.parent_of(0, 1)?;
    if flags & AT_REMOVEDIR != 0 {
        return remove_directory(component, &call.path(1)?);
    }
    names::unlink(&component)?;
    Ok(0)
}

fn rename(call: Call<'_>) -> Outcome {
    names::rename(&call.parent_here(0)?, &call.parent_here(1)?, Replace::Yes)?;
    Ok(0)
}

fn renameat(call: Call<'_>) -> Outcome {
    names::rename(&call.parent_of(0, 1)?, &call.parent_of(2, 3)?, Replace::Yes)?;
    Ok(0)
}

fn renameat2(call: Call<'_>) -> Outcome {
    let replace = match call.uint(4) {
        0 => Replace::Yes,
        RENAME_NOREPLACE => Replace::No,
        RENAME_EXCHANGE => Replace::Exchange,
        _ => return Err(Errno::EINVAL),
    };
    names::rename(&call.parent_of(0, 1)?, &call.parent_of(2, 3)?, replace)?;
    Ok(0)
}

fn link(call: Call<'_>) -> Outcome {
    names::link(&call.place_here(0, Walk::empty())?, &call.parent_here(1)?)?;
    Ok(0)
}

fn linkat(call: Call<'_>) -> Outcome {
    let flags = only(call.uint(4), AT_SYMLINK_FOLLOW | AT_EMPTY_PATH)?;
    let mut walk = Walk::empty();
    walk.set(Walk::FOLLOW, flags & AT_SYMLINK_FOLLOW != 0);
    walk.set(Walk::EMPTY, flags & AT_EMPTY_PATH != 0);
    names::link(&call.place(0, 1, walk)?, &call.parent_of(2, 3)?)?;
    Ok(0)
}

fn symlink(call: Call<'_>) -> Outcome {
    make_link(&call.path(0)?, &call.parent_here(1)?)
}

fn symlinkat(call: Call<'_>) -> Outcome {
    make_link(&call.path(0)?, &call.parent_of(1, 2)?)
}

fn make_link(target: &[u8], component: &LastComponent) -> Outcome {
    if target.is_empty() {
        return Err(Errno::ENOENT);
    }
    make(
        component,
        &Wanted {
            target,
            ..Wanted::new(FileType::Symlink, 0o777)
        },
    )
}

fn chdir(call: Call<'_>) -> Outcome {
    go(call.place_here(0, Walk::FOLLOW | Walk::DIRECTORY)?)
}

fn fchdir(call: Call<'_>) -> Outcome {
    let place = call.opened_path(0)?;
    if !place.dentry.is_directory() {
        return Err(Errno::ENOTDIR);
    }
    go(place)
}

fn go(place: Path) -> Outcome {
    Subject::current(Who::Effective).check(&place.inode().metadata()?, EXECUTE)?;
    vfs::context().set_cwd(place);
    Ok(0)
}

fn chroot(call: Call<'_>) -> Outcome {
    let place = call.place_here(0, Walk::FOLLOW | Walk::DIRECTORY)?;
    let subject = Subject::current(Who::Effective);
    subject.check(&place.inode().metadata()?, EXECUTE)?;
    subject.check_chroot()?;
    vfs::context().set_root(place);
    Ok(0)
}

fn getcwd(call: Call<'_>) -> Outcome {
    let context = vfs::context();
    let cwd = context.cwd();
    if cwd.dentry.is_gone() {
        return Err(Errno::ENOENT);
    }
    let root = context.root();
    let mut name = match cwd.name_below(&root) {
        Some(name) => name,
        None => [b"(unreachable)", &cwd.name_from(&root)[..]].concat(),
    };
    name.push(0);
    if name.len() > call.size(1) {
        return Err(Errno::ERANGE);
    }
    user::copy_out(&name, call.addr(0))?;
    Ok(name.len())
}

fn umask(call: Call<'_>) -> Outcome {
    Ok(vfs::context().set_umask(call.uint(0)) as usize)
}
