//! What a protocol says of an inode of the host.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::ops::Range;

use sync::Result;
use vfs::extended::Extended;
use vfs::{Change, FileType, Metadata, New};

use crate::bytes::Bytes;
use crate::list::Name;
use crate::node::Node;

/// An inode of the host as one protocol speaks of it. Each call is a request or a few, and may block.
pub trait Remote: Bytes + Send + Sync + Sized + 'static {
    /// Which one it is.
    fn identity(&self) -> &Identity;

    /// Whether nobody changes its folder, which is only read then.
    fn is_immutable(&self) -> bool {
        false
    }

    /// What the host says of it now, even if it has no name any more.
    fn metadata(&self) -> Result<Metadata>;

    /// Opens the file on the host, if it is not: so it survives its removal.
    fn open(&self) -> Result<()>;

    /// Changes owner, mode or times.
    fn change(&self, change: &Change) -> Result<()>;

    /// Sets the file's size.
    fn resize(&self, size: u64) -> Result<()>;

    /// Waits until the host has for good what it was told.
    fn make_durable(&self, data_only: bool) -> Result<()>;

    /// Some names of a directory from `cursor` on; none at the end.
    fn names(&self, cursor: u64) -> Result<Vec<Name>>;

    /// The inode that has a name in this directory.
    fn lookup(&self, name: &[u8]) -> Result<Arc<Node<Self>>>;

    /// Makes a new one, which belongs to whom `new` says where the server may do that.
    fn create(&self, name: &[u8], new: &New<'_>) -> Result<Arc<Node<Self>>>;

    /// Gives `target` one more name.
    fn link(&self, name: &[u8], target: &Self) -> Result<()>;

    /// Removes the name of anything but a directory.
    fn unlink(&self, name: &[u8]) -> Result<()>;

    /// Removes an empty directory.
    fn rmdir(&self, name: &[u8]) -> Result<()>;

    /// Moves a name to another directory; with `exchange` both stay.
    fn rename(&self, name: &[u8], to: &Self, to_name: &[u8], exchange: bool) -> Result<()>;

    /// The text of a symbolic link.
    fn read_link(&self) -> Result<Vec<u8>>;

    /// Its holes, where the protocol knows of holes.
    fn holes(&self) -> Option<&dyn Holes> {
        None
    }

    /// Its extended attributes, where the protocol has them.
    fn extended(&self) -> Option<&dyn Extended> {
        None
    }
}

/// A file whose parts without data are known.
pub trait Holes {
    /// Reserves (or with `punch` frees) a range.
    fn allocate(&self, range: Range<u64>, keep_size: bool, punch: bool) -> Result<()>;

    /// The next data (or hole) at or after `offset`.
    fn seek(&self, offset: u64, hole: bool) -> Result<u64>;
}

/// What an inode of the host is known by, and never changes.
pub struct Identity {
    /// The file system's number: two of one folder have the same.
    pub device: u64,
    /// Its number at the host.
    pub number: u64,
    /// What it is.
    pub kind: FileType,
}

impl Identity {
    /// That of the inode of which the host said this.
    pub fn of(found: &Metadata) -> Self {
        Self {
            device: found.device,
            number: found.number,
            kind: found.kind,
        }
    }

    /// Whether the host said this of it, and not of another that has its number by now.
    pub fn is(&self, found: &Metadata) -> bool {
        found.kind == self.kind && found.number == self.number
    }
}
