//! Arguments that name files: paths, and the directories they start from.

use alloc::vec::Vec;

use linux_raw_sys::general::AT_FDCWD;
use mm::user;
use sync::{Error, Result};
use vfs::{self, LastComponent, PATH_BYTES_MAX, Path, Walk};

use crate::call::Call;

impl Call<'_> {
    /// The path whose address is argument `index`.
    pub fn path(&self, index: usize) -> Result<Vec<u8>> {
        user::read_string(self.addr(index), PATH_BYTES_MAX)?.ok_or(Error::NameTooLong)
    }

    /// Where a path starts: the directory that argument `index` stands for, `None` for
    /// AT_FDCWD. An absolute path does not need it.
    pub fn start(&self, index: usize, path: &[u8]) -> Result<Option<Path>> {
        if self.int(index) == AT_FDCWD || path.first() == Some(&b'/') {
            return Ok(None);
        }
        self.opened_path(index).map(Some)
    }

    /// The place at which the descriptor in argument `index` was opened.
    pub fn opened_path(&self, index: usize) -> Result<Path> {
        self.open_file(index)?
            .path
            .clone()
            .ok_or(Error::NotDirectory)
    }

    /// The place that a directory's descriptor and a path name.
    pub fn place(&self, directory: usize, path: usize, how: Walk) -> Result<Path> {
        let path = self.path(path)?;
        vfs::resolve(self.start(directory, &path)?.as_ref(), &path, how)
    }

    /// The place that a path alone names.
    pub fn place_here(&self, path: usize, how: Walk) -> Result<Path> {
        vfs::resolve(None, &self.path(path)?, how)
    }

    /// Where a directory's descriptor and a path say that a name shall be.
    pub fn parent_of(&self, directory: usize, path: usize) -> Result<LastComponent> {
        let path = self.path(path)?;
        vfs::resolve_parent(self.start(directory, &path)?.as_ref(), &path, Walk::empty())
    }

    /// The same for a path alone.
    pub fn parent_here(&self, path: usize) -> Result<LastComponent> {
        vfs::resolve_parent(None, &self.path(path)?, Walk::empty())
    }
}
