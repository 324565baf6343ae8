//! Files by their names, in a folder or in an archive.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use crate::error::{Error, Result};

/// What holds the files of a layout.
pub(super) trait Files {
    /// The folder or the archive.
    fn path(&self) -> &Path;

    /// A file by its name, which has no `..` in it; `None` if there is none.
    fn open(&mut self, name: &str) -> Result<Option<Box<dyn Read + '_>>>;

    /// A whole document.
    fn read(&mut self, name: &str) -> Result<Option<Vec<u8>>> {
        let path = self.path().join(name);
        let Some(file) = self.open(name)? else {
            return Ok(None);
        };
        let mut bytes = Vec::new();
        let read = file.take(super::DOCUMENT_BYTES_MAX).read_to_end(&mut bytes);
        read.map_err(Error::file(path))?;
        Ok(Some(bytes))
    }
}

/// A folder.
pub(super) struct Folder(pub(super) PathBuf);

impl Files for Folder {
    fn path(&self) -> &Path {
        &self.0
    }

    fn open(&mut self, name: &str) -> Result<Option<Box<dyn Read + '_>>> {
        let path = self.0.join(name);
        match File::open(&path) {
            Ok(file) => Ok(Some(Box::new(file))),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(Error::file(path)(error)),
        }
    }
}
