//! The same files at a second place: MS_BIND.
//!
//! A copy shows the same super block through a mount of its own; with MS_REC what is mounted
//! below is copied too, but for mounts that forbid it. A copy of a mount is in its peer group.

use alloc::sync::Arc;

use sync::{Error, Result};

use super::change::{mount_at, mount_point};
use super::table::{self, CHANGING};
use super::tree::{Extent, Tree};
use super::{Mount, MountFlags, Path};

/// Shows what is at `from` also at `at`.
///
/// Errors: `Invalid` for what cannot be bound; as `mount`.
pub fn bind(from: &Path, at: Path, recursive: bool) -> Result<()> {
    let _still = CHANGING.lock();
    let tree = copy(from, recursive)?;
    let at = mount_point(at, tree.top())?;
    mount_at(&tree, at)
}

/// A copy of what is at `from`, at no place yet.
///
/// Errors: as [`bind`].
pub(super) fn detached(from: &Path, recursive: bool) -> Result<Arc<Mount>> {
    let _still = CHANGING.lock();
    let tree = copy(from, recursive)?;
    table::reserve(tree.len(), tree.len())?;
    tree.list();
    Ok(tree.top().clone())
}

fn copy(from: &Path, recursive: bool) -> Result<Tree> {
    if !table::is_in_tree(&from.mount) || from.mount.has(MountFlags::UNBINDABLE) {
        return Err(Error::Invalid);
    }
    let extent = match recursive {
        true => Extent::Bindable,
        false => Extent::Top,
    };
    Ok(Tree::copy_of(from, extent)?.tree)
}
