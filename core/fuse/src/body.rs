//! A request's number, its body, and what it may be answered with.

use fields::Writer;

use crate::attributes::{Attributes, Entry, FileSystemUsage};
use crate::request::{Call, Forget, Request, What};
use crate::{NAME_BYTES_MAX, REPLY_HEADER_BYTES, TARGET_BYTES_MAX, VERSION};

/// INIT's flags: several reads at a time, writes beyond a page, modes that have gone through the umask
/// already, lookups in one directory at a time by several, and more than 32 pages in a message.
const INIT_FLAGS: u32 = 1 << 0 | 1 << 5 | 1 << 6 | 1 << 18 | 1 << 22;
/// `FUSE_FSYNC_FDATASYNC`.
const FSYNC_DATA_ONLY: u32 = 1;
/// `struct fuse_init_out`.
const INIT_BYTES: usize = 64;
const OPEN_BYTES: usize = 16;

/// What the body of a reply is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Shape {
    /// No reply at all.
    Silence,
    Nothing,
    Init,
    Entry,
    Attributes,
    Open,
    Created,
    Data,
    Names,
    Target,
    Written,
    Usage,
    Offset,
}

impl Request<'_> {
    /// Linux's number of the request.
    pub(crate) fn opcode(&self) -> u32 {
        match self {
            Self::Lookup { .. } => 1,
            Self::Getattr => 3,
            Self::Setattr { .. } => 4,
            Self::Readlink => 5,
            Self::Symlink { .. } => 6,
            Self::Mknod { .. } => 8,
            Self::Mkdir { .. } => 9,
            Self::Unlink { .. } => 10,
            Self::Rmdir { .. } => 11,
            Self::Rename { flags: 0, .. } => 12,
            Self::Link { .. } => 13,
            Self::Open { what, .. } => of(*what, 14, 27),
            Self::Read { what, .. } => of(*what, 15, 28),
            Self::Write { .. } => 16,
            Self::Statfs => 17,
            Self::Release { what, .. } => of(*what, 18, 29),
            Self::Fsync { what, .. } => of(*what, 20, 30),
            Self::Setxattr { .. } => 21,
            Self::Getxattr { .. } => 22,
            Self::Listxattr { .. } => 23,
            Self::Removexattr { .. } => 24,
            Self::Init => 26,
            Self::Create { .. } => 35,
            Self::BatchForget { .. } => 42,
            Self::Fallocate { .. } => 43,
            Self::Rename { .. } => 45,
            Self::Lseek { .. } => 46,
        }
    }

    /// What answers it.
    pub(crate) fn shape(&self) -> Shape {
        match self {
            Self::BatchForget { .. } => Shape::Silence,
            Self::Init => Shape::Init,
            Self::Lookup { .. }
            | Self::Symlink { .. }
            | Self::Mknod { .. }
            | Self::Mkdir { .. }
            | Self::Link { .. } => Shape::Entry,
            Self::Getattr | Self::Setattr { .. } => Shape::Attributes,
            Self::Readlink => Shape::Target,
            Self::Open { .. } => Shape::Open,
            Self::Create { .. } => Shape::Created,
            Self::Read {
                what: What::Directory,
                ..
            } => Shape::Names,
            // A size would answer a count of zero: none is ever asked for.
            Self::Read { .. } | Self::Getxattr { .. } | Self::Listxattr { .. } => Shape::Data,
            Self::Write { .. } => Shape::Written,
            Self::Statfs => Shape::Usage,
            Self::Lseek { .. } => Shape::Offset,
            Self::Unlink { .. }
            | Self::Rmdir { .. }
            | Self::Rename { .. }
            | Self::Release { .. }
            | Self::Fsync { .. }
            | Self::Fallocate { .. }
            | Self::Setxattr { .. }
            | Self::Removexattr { .. } => Shape::Nothing,
        }
    }

    /// The most bytes of data, names or text that the reply may bring, or say that it took.
    pub(crate) fn limit(&self) -> usize {
        match self {
            Self::Read { count, .. } | Self::Getxattr { count, .. } | Self::Listxattr { count } => {
                *count as usize
            }
            Self::Readlink => TARGET_BYTES_MAX,
            Self::Write { data, .. } => data.len(),
            _ => 0,
        }
    }

    /// Bytes of the longest reply, its header included; zero if there is none.
    pub fn reply_bytes(&self) -> usize {
        REPLY_HEADER_BYTES
            + match self.shape() {
                Shape::Silence => return 0,
                Shape::Nothing => 0,
                Shape::Init => INIT_BYTES,
                Shape::Entry => Entry::BYTES,
                Shape::Attributes => 16 + Attributes::BYTES,
                Shape::Open => OPEN_BYTES,
                Shape::Created => Entry::BYTES + OPEN_BYTES,
                Shape::Data | Shape::Names | Shape::Target => self.limit(),
                Shape::Written | Shape::Offset => 8,
                Shape::Usage => FileSystemUsage::BYTES,
            }
    }

    fn write(&self, to: &mut Writer<'_>) {
        match *self {
            Self::Init => {
                let (major, minor) = VERSION;
                // No read-ahead of the server's.
                to.u32(major).u32(minor).u32(0).u32(INIT_FLAGS)
            }
            Self::Lookup { name } | Self::Unlink { name } | Self::Rmdir { name } => text(to, name),
            Self::Removexattr { name } => text(to, name),
            Self::BatchForget { nodes } => {
                to.u32(nodes.len() as u32).u32(0);
                nodes.iter().fold(to, |to, Forget { node, lookups }| {
                    to.u64(*node).u64(*lookups)
                })
            }
            // No flags, no handle.
            Self::Getattr => to.u32(0).u32(0).u64(0),
            Self::Setattr { set } => {
                set.write(to);
                to
            }
            Self::Symlink { name, target } => text(text(to, name), target),
            Self::Mknod { name, mode, device } => {
                text(to.u32(mode).u32(device).u32(0).u32(0), name)
            }
            Self::Mkdir { name, mode } => text(to.u32(mode).u32(0), name),
            Self::Rename {
                name,
                to: directory,
                new_name,
                flags,
            } => {
                to.u64(directory);
                if flags != 0 {
                    to.u32(flags).u32(0);
                }
                text(text(to, name), new_name)
            }
            Self::Link { old, name } => text(to.u64(old), name),
            Self::Create { name, flags, mode } => text(to.u32(flags).u32(mode).u32(0).u32(0), name),
            Self::Setxattr { name, value, flags } => {
                text(to.u32(value.len() as u32).u32(flags), name).bytes(value)
            }
            Self::Getxattr { name, count } => text(to.u32(count).u32(0), name),
            Self::Listxattr { count } => to.u32(count).u32(0),
            _ => self.write_of_handle(to),
        };
    }

    /// Of those that open a node, or use it by its handle.
    fn write_of_handle<'w, 'b>(&self, to: &'w mut Writer<'b>) -> &'w mut Writer<'b> {
        match *self {
            Self::Open { flags, .. } => to.u32(flags).u32(0),
            Self::Read {
                handle,
                offset,
                count,
                ..
            } => {
                to.u64(handle).u64(offset).u32(count).u32(0);
                to.u64(0).u32(0).u32(0)
            }
            Self::Write {
                handle,
                offset,
                data,
            } => {
                to.u64(handle).u64(offset).u32(data.len() as u32).u32(0);
                to.u64(0).u32(0).u32(0).bytes(data)
            }
            Self::Release { handle, .. } => to.u64(handle).u32(0).u32(0).u64(0),
            Self::Fsync {
                handle, data_only, ..
            } => {
                let flags = if data_only { FSYNC_DATA_ONLY } else { 0 };
                to.u64(handle).u32(flags).u32(0)
            }
            Self::Fallocate {
                handle,
                offset,
                len,
                mode,
            } => to.u64(handle).u64(offset).u64(len).u32(mode).u32(0),
            Self::Lseek {
                handle,
                offset,
                whence,
            } => to.u64(handle).u64(offset).u32(whence).u32(0),
            // The others have no body.
            _ => to,
        }
    }

    /// Whether each text in it is one: the server would take a zero for its end.
    fn has_texts(&self) -> bool {
        let is_name =
            |name: &[u8]| (1..=NAME_BYTES_MAX).contains(&name.len()) && !name.contains(&0);
        match self {
            Self::Lookup { name }
            | Self::Mknod { name, .. }
            | Self::Mkdir { name, .. }
            | Self::Unlink { name }
            | Self::Rmdir { name }
            | Self::Link { name, .. }
            | Self::Create { name, .. }
            | Self::Setxattr { name, .. }
            | Self::Getxattr { name, .. }
            | Self::Removexattr { name } => is_name(name),
            Self::Symlink { name, target } => is_name(name) && !target.contains(&0),
            Self::Rename { name, new_name, .. } => is_name(name) && is_name(new_name),
            _ => true,
        }
    }
}

impl Call<'_> {
    /// Writes the message into `to`; returns its bytes, or `None` if there is no room or a name is none.
    pub(crate) fn encode(&self, unique: u64, to: &mut [u8]) -> Option<usize> {
        if !self.request.has_texts() {
            return None;
        }
        let to = &mut Writer::new(to);
        to.u32(0).u32(self.request.opcode());
        to.u64(unique).u64(self.node);
        to.u32(self.caller.uid).u32(self.caller.gid);
        to.u32(self.caller.pid).u32(0);
        self.request.write(to);
        to.finish()
    }
}

/// The number of a request on files, or of that on directories.
fn of(what: What, file: u32, directory: u32) -> u32 {
    match what {
        What::File => file,
        What::Directory => directory,
    }
}

/// A text ends with a zero.
fn text<'w, 'b>(to: &'w mut Writer<'b>, text: &[u8]) -> &'w mut Writer<'b> {
    to.bytes(text).u8(0)
}
