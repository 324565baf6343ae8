//! A directory that follows from the paths of a table.

use alloc::string::String;

use sync::{Error, Result};

use super::{Table, number_of};
use crate::file::File;
use crate::inode::{DirEntry, Emit};
use crate::{FileType, Inode, InodeRef, Metadata};

/// The inode.
pub struct Directory {
    table: &'static Table,
    device: u64,
    path: String,
}

impl Directory {
    /// The directory `path` of the table.
    pub fn new(table: &'static Table, device: u64, path: &str) -> Self {
        Self {
            table,
            device,
            path: String::from(path),
        }
    }

    /// The path of `name` in it.
    fn join(&self, name: &[u8]) -> Result<String> {
        let name = core::str::from_utf8(name).map_err(|_| Error::NotFound)?;
        Ok(match self.path.as_str() {
            "" => String::from(name),
            path => [path, "/", name].concat(),
        })
    }
}

impl File for Directory {
    fn metadata(&self) -> Result<Metadata> {
        let number = number_of(self.path.as_bytes());
        let mut metadata = Metadata::new(self.device, number, FileType::Directory, 0o555);
        metadata.links = 2;
        Ok(metadata)
    }

    fn is_seekable(&self) -> bool {
        true
    }

    fn as_any(&self) -> &dyn core::any::Any {
        self
    }
}

impl Inode for Directory {
    fn kind(&self) -> FileType {
        FileType::Directory
    }

    fn lookup(&self, name: &[u8]) -> Result<InodeRef> {
        self.table.find(self.device, &self.join(name)?)
    }

    fn list(&self, cursor: u64, emit: Emit<'_>) -> Result<()> {
        let skipped = usize::try_from(cursor).unwrap_or(usize::MAX);
        for (index, (name, kind)) in self
            .table
            .names(&self.path)
            .iter()
            .enumerate()
            .skip(skipped)
        {
            let number = number_of(self.join(name.as_bytes())?.as_bytes());
            let entry = DirEntry {
                name: name.as_bytes(),
                number,
                kind: *kind,
                next: index as u64 + 1,
            };
            if !emit(entry) {
                break;
            }
        }
        Ok(())
    }
}
