//! The cache of names (`core/dcache`) over the kernel's inodes.

use dcache::{Host, Refusal};
pub use dcache::{NAME_BYTES_MAX, Name};
use sync::{Error, Result};

use crate::inode::notify;
use crate::{FileType, InodeRef};

/// One name of one inode.
pub type Dentry = dcache::Dentry<Names>;

/// What the cache asks of the kernel.
pub struct Names;

impl Host for Names {
    type Family = mach::sync::Native;
    type Sleeping = sync::Sleeping;
    type Memory = mach::mem::fallible::Heap;
    type Inode = InodeRef;
    type Kind = FileType;
    type Error = Error;

    fn kind(inode: &InodeRef) -> FileType {
        inode.kind()
    }

    fn is_directory(kind: FileType) -> bool {
        kind == FileType::Directory
    }

    fn look_up(directory: &InodeRef, name: &[u8]) -> Result<Option<InodeRef>> {
        match directory.lookup(name) {
            Err(Error::NotFound) => Ok(None),
            answer => answer.map(Some),
        }
    }

    fn ended(inode: &InodeRef) {
        notify::ended(inode);
    }

    fn is_memory_short() -> bool {
        mach::mem::is_short()
    }

    fn refuse(why: Refusal) -> Error {
        match why {
            Refusal::NotDirectory => Error::NotDirectory,
            Refusal::NameTooLong => Error::NameTooLong,
            Refusal::NotFound => Error::NotFound,
            Refusal::NoMemory => Error::OutOfMemory,
        }
    }
}
