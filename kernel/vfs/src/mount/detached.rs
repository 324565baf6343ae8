//! Mounts that have no place yet, and the descriptors that stand for them: fsmount(2),
//! open_tree(2) with OPEN_TREE_CLONE.
//!
//! Such a descriptor names the top of the mounts, so that walks can start there. If it is closed
//! before move_mount(2) gave them a place, they go.

use alloc::sync::Arc;

use mach::mem::fallible;
use sync::Result;

use super::table::{self, CHANGING};
use super::{Mount, Path, copy};
use crate::file::{File, OpenFile, StatusFlags};

struct Detached(Arc<Mount>);

/// A descriptor's open file for `mount`, which is listed and has no place.
///
/// Errors: `OutOfMemory`; then the mount is gone.
pub fn open_detached(mount: Arc<Mount>) -> Result<Arc<OpenFile>> {
    let place = Path::top_of(&mount);
    let file = fallible::arc(Detached(mount))?;
    Ok(OpenFile::at(file, StatusFlags::PATH, place))
}

/// The same for a copy of what is at `from`.
///
/// Errors: as `bind`.
pub fn open_copy(from: &Path, recursive: bool) -> Result<Arc<OpenFile>> {
    open_detached(copy::detached(from, recursive)?)
}

impl Drop for Detached {
    fn drop(&mut self) {
        let _still = CHANGING.lock();
        if self.0.covers().is_none() {
            table::select(&self.0);
            table::remove_selected();
        }
    }
}

impl File for Detached {
    fn as_any(&self) -> &dyn core::any::Any {
        self
    }
}
