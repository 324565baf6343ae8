//! What a client asks for.

use crate::attributes::{Attributes, SetAttributes};
use crate::fids::{Fid, NO_FID};
use crate::{IO_HEADER_BYTES, VERSION};
use fields::Writer;

/// The most names in one `Walk`.
pub const WALK_NAMES_MAX: usize = 16;

/// A request's type; its reply has the next number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
#[expect(missing_docs, reason = "the protocol's names; see `Request`")]
pub enum Kind {
    Statfs = 8,
    Lopen = 12,
    Lcreate = 14,
    Symlink = 16,
    Mknod = 18,
    Readlink = 22,
    Getattr = 24,
    Setattr = 26,
    Readdir = 40,
    Fsync = 50,
    Lock = 52,
    Link = 70,
    Mkdir = 72,
    Renameat = 74,
    Unlinkat = 76,
    Version = 100,
    Attach = 104,
    Flush = 108,
    Walk = 110,
    Read = 116,
    Write = 118,
    Clunk = 120,
}

/// What to do with a record lock.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LockKind {
    /// Share the range.
    Read,
    /// Own the range.
    Write,
    /// Give the range up.
    Unlock,
}

/// A request. Names are single components without `/`; flags and modes are Linux's.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[expect(missing_docs, reason = "each request's line speaks of its fields")]
pub enum Request<'a> {
    /// Opens the conversation; `msize` is the largest message that we can take.
    Version { msize: u32 },
    /// Names the root of the tree `tree` (empty: the default) as `fid`, for user `uid`.
    Attach { fid: Fid, uid: u32, tree: &'a [u8] },
    /// Names what lies `names` below `fid` as `new`; without names, `fid` once more.
    Walk {
        fid: Fid,
        new: Fid,
        names: &'a [&'a [u8]],
    },
    /// Forgets `fid`; also if the reply is an error.
    Clunk { fid: Fid },
    /// Opens the file.
    Lopen { fid: Fid, flags: u32 },
    /// Makes and opens `name` in the directory `fid`, which then names the new file.
    Lcreate {
        fid: Fid,
        name: &'a [u8],
        flags: u32,
        mode: u32,
        gid: u32,
    },
    /// Reads up to `count` bytes.
    Read { fid: Fid, offset: u64, count: u32 },
    /// Writes.
    Write {
        fid: Fid,
        offset: u64,
        data: &'a [u8],
    },
    /// Lists a directory from the cursor `offset` (0 at first), `count` bytes at most.
    Readdir { fid: Fid, offset: u64, count: u32 },
    /// Asks for attributes.
    Getattr { fid: Fid },
    /// Changes attributes.
    Setattr { fid: Fid, set: SetAttributes },
    /// Brings the file to the medium.
    Fsync { fid: Fid, data_only: bool },
    /// Makes a directory.
    Mkdir {
        dir: Fid,
        name: &'a [u8],
        mode: u32,
        gid: u32,
    },
    /// Makes a symbolic link.
    Symlink {
        dir: Fid,
        name: &'a [u8],
        target: &'a [u8],
        gid: u32,
    },
    /// Makes a node.
    Mknod {
        dir: Fid,
        name: &'a [u8],
        mode: u32,
        major: u32,
        minor: u32,
        gid: u32,
    },
    /// Gives `fid` one more name.
    Link { dir: Fid, fid: Fid, name: &'a [u8] },
    /// Renames.
    Renameat {
        from: Fid,
        name: &'a [u8],
        to: Fid,
        new_name: &'a [u8],
    },
    /// Removes a name; `flags` as unlinkat(2).
    Unlinkat {
        dir: Fid,
        name: &'a [u8],
        flags: u32,
    },
    /// Reads a symbolic link.
    Readlink { fid: Fid },
    /// Asks how full the file system is.
    Statfs { fid: Fid },
    /// Changes a record lock without waiting; `length` 0 is "to the end".
    Lock {
        fid: Fid,
        kind: LockKind,
        start: u64,
        length: u64,
        owner: u32,
        client: &'a [u8],
    },
    /// Asks to forget the request with this tag.
    Flush { tag: u16 },
}

impl Request<'_> {
    /// Its type.
    pub fn kind(&self) -> Kind {
        match self {
            Self::Version { .. } => Kind::Version,
            Self::Attach { .. } => Kind::Attach,
            Self::Walk { .. } => Kind::Walk,
            Self::Clunk { .. } => Kind::Clunk,
            Self::Lopen { .. } => Kind::Lopen,
            Self::Lcreate { .. } => Kind::Lcreate,
            Self::Read { .. } => Kind::Read,
            Self::Write { .. } => Kind::Write,
            Self::Readdir { .. } => Kind::Readdir,
            Self::Getattr { .. } => Kind::Getattr,
            Self::Setattr { .. } => Kind::Setattr,
            Self::Fsync { .. } => Kind::Fsync,
            Self::Mkdir { .. } => Kind::Mkdir,
            Self::Symlink { .. } => Kind::Symlink,
            Self::Mknod { .. } => Kind::Mknod,
            Self::Link { .. } => Kind::Link,
            Self::Renameat { .. } => Kind::Renameat,
            Self::Unlinkat { .. } => Kind::Unlinkat,
            Self::Readlink { .. } => Kind::Readlink,
            Self::Statfs { .. } => Kind::Statfs,
            Self::Lock { .. } => Kind::Lock,
            Self::Flush { .. } => Kind::Flush,
        }
    }

    /// The most that the reply may bring: names walked, bytes read or written.
    pub(crate) fn limit(&self) -> u32 {
        match *self {
            Self::Walk { names, .. } => names.len() as u32,
            Self::Read { count, .. } | Self::Readdir { count, .. } => count,
            Self::Write { data, .. } => u32::try_from(data.len()).unwrap_or(u32::MAX),
            Self::Version { msize } => msize,
            _ => u32::MAX,
        }
    }

    /// Bytes of data that the reply is expected to carry beside its header.
    pub(crate) fn reply_bytes(&self) -> usize {
        match *self {
            Self::Read { count, .. } | Self::Readdir { count, .. } => count as usize,
            _ => 0,
        }
    }

    /// Writes the message into `to`; `None` if it does not fit or a name is too long.
    pub(crate) fn encode(&self, tag: u16, to: &mut [u8]) -> Option<usize> {
        let mut to = Writer::new(to);
        to.u32(0).u8(self.kind() as u8).u16(tag);
        self.body(&mut to)?;
        to.finish()
    }

    fn body(&self, to: &mut Writer<'_>) -> Option<()> {
        match *self {
            Self::Version { msize } => to.u32(msize).string(VERSION),
            Self::Attach { fid, uid, tree } => to
                .u32(fid.0)
                .u32(NO_FID.0)
                .string(b"")
                .string(tree)
                .u32(uid),
            Self::Walk { fid, new, names } => {
                let count = u16::try_from(names.len()).ok();
                let count = count.filter(|_| names.len() <= WALK_NAMES_MAX)?;
                to.u32(fid.0).u32(new.0).u16(count);
                names.iter().fold(to, |to, name| to.string(name))
            }
            Self::Clunk { fid } | Self::Readlink { fid } | Self::Statfs { fid } => to.u32(fid.0),
            Self::Lopen { fid, flags } => to.u32(fid.0).u32(flags),
            Self::Lcreate {
                fid,
                name,
                flags,
                mode,
                gid,
            } => to.u32(fid.0).string(name).u32(flags).u32(mode).u32(gid),
            Self::Read { fid, offset, count } | Self::Readdir { fid, offset, count } => {
                to.u32(fid.0).u64(offset).u32(count)
            }
            Self::Write { fid, offset, data } => to
                .u32(fid.0)
                .u64(offset)
                .u32(u32::try_from(data.len()).ok()?)
                .bytes(data),
            Self::Getattr { fid } => to.u32(fid.0).u64(Attributes::BASIC),
            Self::Setattr { fid, set } => {
                set.write(to.u32(fid.0));
                to
            }
            Self::Fsync { fid, data_only } => to.u32(fid.0).u32(u32::from(data_only)),
            Self::Mkdir {
                dir,
                name,
                mode,
                gid,
            } => to.u32(dir.0).string(name).u32(mode).u32(gid),
            Self::Symlink {
                dir,
                name,
                target,
                gid,
            } => to.u32(dir.0).string(name).string(target).u32(gid),
            Self::Mknod {
                dir,
                name,
                mode,
                major,
                minor,
                gid,
            } => to
                .u32(dir.0)
                .string(name)
                .u32(mode)
                .u32(major)
                .u32(minor)
                .u32(gid),
            Self::Link { dir, fid, name } => to.u32(dir.0).u32(fid.0).string(name),
            Self::Renameat {
                from,
                name,
                to: dir,
                new_name,
            } => to.u32(from.0).string(name).u32(dir.0).string(new_name),
            Self::Unlinkat { dir, name, flags } => to.u32(dir.0).string(name).u32(flags),
            Self::Lock {
                fid,
                kind,
                start,
                length,
                owner,
                client,
            } => {
                to.u32(fid.0).u8(kind as u8).u32(0).u64(start).u64(length);
                to.u32(owner).string(client)
            }
            Self::Flush { tag } => to.u16(tag),
        };
        Some(())
    }
}

const _: () = assert!(
    IO_HEADER_BYTES >= crate::HEADER_BYTES + 4 + 8 + 4,
    "a write's fields fit"
);
const _: () = assert!(
    LockKind::Unlock as u8 == 2,
    "the wire's numbers: read, write, unlock"
);
