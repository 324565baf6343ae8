//! Rootfs, the file system of tops that nobody sees: one empty directory.
//!
//! It carries the first mount, which every namespace has below what its programs know as `/`, and
//! places that stand for files without a name.

use alloc::sync::Arc;
use core::any::Any;

use sync::{Error, Result};

use crate::file::File;
use crate::inode::Emit;
use crate::{FileSystem, FileType, Inode, InodeRef, Metadata, Usage, next_device};

/// Linux's number of rootfs (statfs(2)).
const MAGIC: u64 = 0x0102_1994;

/// See the module.
pub(crate) struct RootFs {
    top: Arc<Top>,
}

impl RootFs {
    /// One more.
    pub fn new() -> Arc<Self> {
        let device = next_device();
        let top = Arc::new(Top { device });
        Arc::new(Self { top })
    }
}

impl FileSystem for RootFs {
    fn kind(&self) -> &'static str {
        "rootfs"
    }

    fn root(&self) -> InodeRef {
        self.top.clone()
    }

    fn usage(&self) -> Usage {
        Usage {
            magic: MAGIC,
            block_bytes: base::PAGE_BYTES as u64,
            ..Usage::default()
        }
    }
}

struct Top {
    device: u64,
}

impl File for Top {
    fn metadata(&self) -> Result<Metadata> {
        let kind = FileType::Directory;
        Ok(Metadata::new(self.device, 1, kind, 0o755))
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

impl Inode for Top {
    fn kind(&self) -> FileType {
        FileType::Directory
    }

    fn lookup(&self, _name: &[u8]) -> Result<InodeRef> {
        Err(Error::NotFound)
    }

    fn list(&self, _cursor: u64, _emit: Emit<'_>) -> Result<()> {
        Ok(())
    }
}
