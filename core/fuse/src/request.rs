//! What a client asks for.

use crate::NodeId;
use crate::attributes::SetAttributes;

/// For whom something is asked, as the machine's kernel knows them.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Caller {
    /// User; the owner of what is made.
    pub uid: u32,
    /// Group; likewise.
    pub gid: u32,
    /// Process.
    pub pid: u32,
}

/// A node that is used no more.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Forget {
    /// Which.
    pub node: NodeId,
    /// How many entries named it.
    pub lookups: u64,
}

/// A message: who asks what of which node.
#[derive(Clone, Copy, Debug)]
pub struct Call<'a> {
    /// The node; of those that name two, the directory.
    pub node: NodeId,
    /// For whom.
    pub caller: Caller,
    /// What.
    pub request: Request<'a>,
}

/// What is read by a handle.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum What {
    /// A file, or its bytes.
    File,
    /// A directory, or its names.
    Directory,
}

/// A request. Names are single components without `/`; flags, modes and device numbers are
/// Linux's.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[expect(missing_docs, reason = "each request's line speaks of its fields")]
pub enum Request<'a> {
    /// Opens the conversation.
    Init,
    /// Finds a name in a directory.
    Lookup { name: &'a [u8] },
    /// Gives up nodes. It has no reply but that the transport is done with it.
    BatchForget { nodes: &'a [Forget] },
    /// Asks for attributes.
    Getattr,
    /// Changes attributes.
    Setattr { set: SetAttributes },
    /// Asks for a symbolic link's text.
    Readlink,
    /// Makes a symbolic link.
    Symlink { name: &'a [u8], target: &'a [u8] },
    /// Makes a file of any kind but a directory and a link.
    Mknod {
        name: &'a [u8],
        mode: u32,
        device: u32,
    },
    /// Makes a directory.
    Mkdir { name: &'a [u8], mode: u32 },
    /// Takes the name of anything but a directory away.
    Unlink { name: &'a [u8] },
    /// Takes an empty directory away.
    Rmdir { name: &'a [u8] },
    /// Moves a name to the directory `to`; `flags` are those of renameat2(2).
    Rename {
        name: &'a [u8],
        to: NodeId,
        new_name: &'a [u8],
        flags: u32,
    },
    /// Gives the node `old` a name.
    Link { old: NodeId, name: &'a [u8] },
    /// Opens the node.
    Open { what: What, flags: u32 },
    /// Makes a regular file and opens it.
    Create {
        name: &'a [u8],
        flags: u32,
        mode: u32,
    },
    /// Reads `count` bytes, or as many bytes of names, from `offset` on.
    Read {
        what: What,
        handle: u64,
        offset: u64,
        count: u32,
    },
    /// Writes at `offset`.
    Write {
        handle: u64,
        offset: u64,
        data: &'a [u8],
    },
    /// Closes an open node.
    Release { what: What, handle: u64 },
    /// Brings an open node to the medium.
    Fsync {
        what: What,
        handle: u64,
        data_only: bool,
    },
    /// fallocate(2).
    Fallocate {
        handle: u64,
        offset: u64,
        len: u64,
        mode: u32,
    },
    /// The next data or hole; `whence` as lseek(2) has it.
    Lseek {
        handle: u64,
        offset: u64,
        whence: u32,
    },
    /// How full the file system is.
    Statfs,
    /// Sets an extended attribute; `flags` as setxattr(2) has them.
    Setxattr {
        name: &'a [u8],
        value: &'a [u8],
        flags: u32,
    },
    /// Asks for the value of one, of at most `count` bytes.
    Getxattr { name: &'a [u8], count: u32 },
    /// Asks for the names of all, of at most `count` bytes.
    Listxattr { count: u32 },
    /// Takes one away.
    Removexattr { name: &'a [u8] },
}
