//! /proc/PID/ns: the namespaces that a process is in.

use alloc::boxed::Box;

use super::task::{Subject, owned};
use super::{guard, list};
use sync::{Error, Result};
use task::namespaces::{KINDS, Namespace};
use vfs::file::File;
use vfs::inode::Emit;
use vfs::pseudo::{Link, Target};
use vfs::{FileType, Inode, InodeRef, Metadata};

/// The inode.
pub struct Namespaces {
    metadata: Metadata,
    subject: Subject,
}

impl Namespaces {
    /// Those of a process or thread.
    pub fn new(metadata: Metadata, subject: Subject) -> Self {
        Self { metadata, subject }
    }
}

impl File for Namespaces {
    fn metadata(&self) -> Result<Metadata> {
        Ok(self.metadata)
    }

    fn is_seekable(&self) -> bool {
        true
    }

    fn as_any(&self) -> &dyn core::any::Any {
        self
    }
}

impl Inode for Namespaces {
    fn kind(&self) -> FileType {
        FileType::Directory
    }

    fn lookup(&self, name: &[u8]) -> Result<InodeRef> {
        let known = KINDS.iter().find(|kind| kind.name().as_bytes() == name);
        let kind = *known.ok_or(Error::NotFound)?;
        let number = self.metadata.number ^ (kind as u64) << 1;
        let link = Metadata::new(self.metadata.device, number, FileType::Symlink, 0o777);
        let subject = self.subject.clone();
        let find = move || {
            guard::check(&subject)?;
            let namespace = Namespace::of(subject.thread()?, kind);
            let label = namespace.label().into_bytes();
            Ok(Target::Open(namespace.open(), label))
        };
        Ok(Link::new(owned(&self.subject, link), Box::new(find)))
    }

    fn list(&self, cursor: u64, emit: Emit<'_>) -> Result<()> {
        let names = KINDS.iter().map(|kind| (kind.name(), FileType::Symlink));
        let none = core::iter::empty();
        list::list(cursor, emit, names, none, FileType::Symlink)
    }
}
