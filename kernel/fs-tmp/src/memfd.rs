//! Files in memory without a place in the tree: memfd_create(2).

use alloc::sync::Arc;

use mach::sync::Once;
use sync::{Error, Result};

use crate::Tmpfs;
use vfs::access::{Subject, Who};
use vfs::file::{OpenFile, StatusFlags};
use vfs::{Dentry, Mount, Path};

/// The longest name (Linux's NAME_MAX less the prefix "memfd:").
pub const NAME_BYTES_MAX: usize = 249;

/// The hidden file system that all of them live in.
struct Home {
    tmpfs: Arc<Tmpfs>,
    mount: Arc<Mount>,
}

/// One for all: no name leads there, so nobody can meet another's files.
static HOME: Once<Home> = Once::new();

/// Makes a file; `name` is for people. With `sealable` it takes seals.
pub fn create(name: &[u8], sealable: bool) -> Result<Arc<OpenFile>> {
    if name.len() > NAME_BYTES_MAX {
        return Err(Error::Invalid);
    }
    let home = HOME.call_once(|| {
        let tmpfs = Tmpfs::new(u64::MAX, 0o700);
        Home {
            mount: Mount::hidden(tmpfs.clone()),
            tmpfs,
        }
    });
    let (uid, gid) = Subject::current(Who::Effective).ids();
    let inode = home.tmpfs.nameless(0o777, uid, gid)?;
    if let Some(seals) = inode.seals().filter(|_| sealable) {
        seals.allow();
    }
    let label = [b"/memfd:", name].concat();
    let dentry = Dentry::nameless(inode.clone(), &label);
    let path = Path {
        mount: home.mount.clone(),
        dentry,
    };
    Ok(OpenFile::at(inode, StatusFlags::RDWR, path))
}
