//! Files of /proc/PID that only those may open who may look into the process.
//!
//! An open file belongs to the program that ran when it was made: after an exec, which may have
//! changed whose process it is, it tells nothing more ([`Subject::space`]).

use alloc::sync::Arc;

use super::task::{Subject, TaskDirectory};
use sync::{Error, Result};
use task::{Caller, check_access};
use vfs::file::{File, FileRef};
use vfs::{FileType, Inode, InodeRef, Metadata};

/// Whether the current thread may look into the process; a dead one has nothing to be seen.
///
/// Errors: `AccessDenied`.
pub fn check(subject: &Subject) -> Result<()> {
    let Some(thread) = &subject.thread else {
        return Ok(());
    };
    check_access(thread, Caller::FileSystem).map_err(|_| Error::AccessDenied)
}

/// The inode.
pub struct Guarded {
    directory: TaskDirectory,
    name: &'static str,
}

impl Guarded {
    /// The file `name` of `directory`.
    pub fn new(directory: &TaskDirectory, name: &'static str) -> Arc<Self> {
        let directory = directory.clone();
        Arc::new(Self { directory, name })
    }

    fn inner(&self) -> Result<InodeRef> {
        self.directory.child(self.name)
    }

    /// The memory is taken before the right is asked: if another program takes the process
    /// between the two, the right to that one does not open this.
    fn opened(&self) -> Result<FileRef> {
        let subject = self.directory.subject();
        let space = subject.process.space.get();
        check(subject)?;
        let inode = self.directory.about(&space).child(self.name)?;
        inode.open().unwrap_or(Err(Error::Invalid))
    }
}

impl File for Guarded {
    fn metadata(&self) -> Result<Metadata> {
        self.inner()?.metadata()
    }

    fn as_any(&self) -> &dyn core::any::Any {
        self
    }
}

impl Inode for Guarded {
    fn kind(&self) -> FileType {
        FileType::Regular
    }

    fn open(&self) -> Option<Result<FileRef>> {
        Some(self.opened())
    }

    fn truncate(&self, _size: u64) -> Result<()> {
        Ok(())
    }
}
