//! What a file system provides: inodes, and the system they belong to.
//!
//! An inode is also a [`File`]: opening a regular file or a directory makes no object
//! but the open file. Each method has the answer of an inode that cannot do it. The caller
//! (`dentry`, `names`) has checked permissions and holds the lock of each directory that
//! changes, so an inode sees one change of a directory at a time.

mod attachment;
pub mod attributes;
pub mod extended;
pub mod locks;
mod metadata;
pub mod notify;
pub mod seals;
pub mod set_ids;

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::ops::Range;

use sync::{Error, Result};

pub use attachment::Attachment;
use extended::Extended;
use locks::FileLocks;
pub use metadata::{
    Change, FileType, Metadata, Timestamp, device_number, device_parts, next_device,
};
use seals::Seals;

use crate::Path;

use crate::file::{File, FileRef, OpenFile};

/// An inode as everybody holds it.
pub type InodeRef = Arc<dyn Inode>;

/// What to create.
#[derive(Clone, Copy, Debug)]
pub struct New<'a> {
    /// Kind of file; regular, directory, symbolic link or a device's node.
    pub kind: FileType,
    /// Permission bits, umask applied.
    pub mode: u32,
    /// Owner.
    pub uid: u32,
    /// Group.
    pub gid: u32,
    /// A device's number (makedev encoding).
    pub device: u64,
    /// A symbolic link's text.
    pub target: &'a [u8],
}

/// One name in a directory.
#[derive(Clone, Copy, Debug)]
pub struct DirEntry<'a> {
    /// The name.
    pub name: &'a [u8],
    /// The inode's number.
    pub number: u64,
    /// What it is.
    pub kind: FileType,
    /// The cursor that continues after this entry.
    pub next: u64,
}

/// Receives entries; false stops the listing before this one.
pub type Emit<'a> = &'a mut dyn FnMut(DirEntry<'_>) -> bool;

/// A file, a directory, a link or a node.
pub trait Inode: File {
    /// What it is; never changes.
    fn kind(&self) -> FileType;

    /// Whether its mode may have set-user-ID or set-group-ID bits; false only if it has none.
    fn may_set_ids(&self) -> bool {
        false
    }

    /// Its bytes or its extended attributes are about to change: what stands for something that does not change
    /// itself makes a copy.
    fn prepare_change(&self) -> Result<()> {
        Ok(())
    }

    /// Changes owner, mode or times.
    fn change(&self, _change: &Change) -> Result<()> {
        Err(Error::NotPermitted)
    }

    /// It was read; with `relative` that matters only if nothing says so yet.
    fn note_read(&self, _relative: bool) {}

    /// Finds a name in a directory.
    fn lookup(&self, _name: &[u8]) -> Result<InodeRef> {
        Err(Error::NotDirectory)
    }

    /// Makes a new file under a name that is free.
    fn create(&self, _name: &[u8], _new: &New<'_>) -> Result<InodeRef> {
        Err(Error::NotPermitted)
    }

    /// Makes a file without a name (O_TMPFILE).
    fn create_nameless(&self, _new: &New<'_>) -> Result<InodeRef> {
        Err(Error::Unsupported)
    }

    /// Gives `target` one more name.
    fn link(&self, _name: &[u8], _target: &InodeRef) -> Result<()> {
        Err(Error::NotPermitted)
    }

    /// Removes the name of anything but a directory.
    fn unlink(&self, _name: &[u8]) -> Result<()> {
        Err(Error::NotPermitted)
    }

    /// Removes an empty directory.
    fn rmdir(&self, _name: &[u8]) -> Result<()> {
        Err(Error::NotPermitted)
    }

    /// Moves `name` to `to_name` in `to`, over what is there; with `exchange` both stay.
    fn rename(&self, _name: &[u8], _to: &InodeRef, _to_name: &[u8], _exchange: bool) -> Result<()> {
        Err(Error::NotPermitted)
    }

    /// Lists names from `cursor` (0 at first), without `.` and `..`.
    fn list(&self, _cursor: u64, _emit: Emit<'_>) -> Result<()> {
        Err(Error::NotDirectory)
    }

    /// The text of a symbolic link.
    fn read_link(&self) -> Result<Vec<u8>> {
        Err(Error::Invalid)
    }

    /// For a link that leads to an object and not to a name (`/proc/self/fd/1`).
    fn jump(&self) -> Option<Result<Path>> {
        None
    }

    /// For a magic link to something without a path: the open file itself.
    fn reopen(&self) -> Option<Arc<OpenFile>> {
        None
    }

    /// Whether the current thread may use a directory whatever its mode says.
    fn is_open_to_caller(&self) -> bool {
        false
    }

    /// For an inode whose open files have state of their own: that state.
    fn open(&self) -> Option<Result<FileRef>> {
        None
    }

    /// Sets the size; what is new reads as zeroes.
    fn truncate(&self, _size: u64) -> Result<()> {
        Err(Error::Invalid)
    }

    /// fallocate(2): reserves (or with `punch` frees) a range.
    fn allocate(&self, _range: Range<u64>, _keep_size: bool, _punch: bool) -> Result<()> {
        Err(Error::Unsupported)
    }

    /// Brings data (and unless `data_only` everything else) to the medium.
    fn sync(&self, _data_only: bool) -> Result<()> {
        Ok(())
    }

    /// The next data (or hole) at or after `offset`; `NoSuchDevice` beyond the end.
    fn seek(&self, offset: u64, hole: bool) -> Result<u64> {
        self.metadata()?.seek(offset, hole)
    }

    /// The locks that programs put on it; `None` where there can be none.
    fn locks(&self) -> Option<&FileLocks> {
        None
    }

    /// What may no longer be done with it.
    fn seals(&self) -> Option<&Seals> {
        None
    }

    /// Its extended attributes; `None` where there can be none.
    fn extended(&self) -> Option<&dyn Extended> {
        None
    }

    /// Where pipes and sockets hang their object on a node of theirs.
    fn attachment(&self) -> Option<&Attachment> {
        None
    }
}

/// What statfs(2) says of a file system; sizes in blocks.
#[derive(Clone, Copy, Debug, Default)]
pub struct Usage {
    /// Linux's number of the kind (statfs(2)).
    pub magic: u64,
    /// Bytes in a block.
    pub block_bytes: u64,
    /// All blocks.
    pub blocks: u64,
    /// Blocks that are free.
    pub free_blocks: u64,
    /// All inodes, 0 if without limit.
    pub inodes: u64,
    /// Free inodes.
    pub free_inodes: u64,
}

/// A file system that can be mounted.
pub trait FileSystem: Send + Sync {
    /// Its kind as mount(2) calls it.
    fn kind(&self) -> &'static str;

    /// The directory at its top.
    fn root(&self) -> InodeRef;

    /// How full it is.
    fn usage(&self) -> Usage;

    /// Whether a name, once looked up, stays as it is until we change it.
    fn keeps_names(&self) -> bool {
        true
    }

    /// Takes other options while mounted.
    fn reconfigure(&self, _options: &[u8]) -> Result<()> {
        Ok(())
    }

    /// Writes back everything.
    fn sync(&self) -> Result<()> {
        Ok(())
    }

    /// The machine ends: writes back everything, and leaves what lasts as an unmount would.
    fn finish(&self) -> Result<()> {
        self.sync()
    }

    /// Gives up pages that nobody uses and that can be read in again, until `wanted` are gone or
    /// there are no more; returns how many. Does not wait for whoever uses a file.
    fn give_up_pages(&self, _wanted: usize) -> usize {
        0
    }
}
