//! The same files at a second place: MS_BIND.
//!
//! A copy shows the same super block through a mount of its own; with MS_REC what is mounted
//! below is copied too, but for mounts that forbid it.

use alloc::sync::Arc;
use alloc::vec::Vec;

use mach::mem::fallible;

use super::change::mount_point;
use super::table::{self, CHANGING};
use super::{Mount, MountFlags, Path};
use crate::error::{Error, Result};

/// A mount that is to be copied, its copy, and what the copy will cover.
struct Copy {
    of: Arc<Mount>,
    copy: Arc<Mount>,
    covers: Option<Path>,
}

/// Shows what is at `from` also at `at`.
///
/// Errors: `Invalid` for what cannot be bound; as `mount`.
pub fn bind(from: &Path, at: Path, recursive: bool) -> Result<()> {
    let _still = CHANGING.lock();
    let copies = copies(from, recursive)?;
    let top = top_of(&copies)?;
    let at = mount_point(at, &top)?;
    table::reserve(copies.len(), copies.len())?;
    let at = at.pinned()?;
    list(copies);
    table::attach(&top, at);
    Ok(())
}

/// A copy of what is at `from`, at no place yet.
///
/// Errors: as [`bind`].
pub(super) fn detached(from: &Path, recursive: bool) -> Result<Arc<Mount>> {
    let _still = CHANGING.lock();
    let copies = copies(from, recursive)?;
    let top = top_of(&copies)?;
    table::reserve(copies.len(), copies.len())?;
    list(copies);
    Ok(top)
}

fn top_of(copies: &[Copy]) -> Result<Arc<Mount>> {
    let first = copies.first().ok_or(Error::Invalid)?;
    Ok(first.copy.clone())
}

/// Lists all, and puts them together.
fn list(copies: Vec<Copy>) {
    for Copy { copy, covers, .. } in copies {
        table::add(&copy);
        if let Some(at) = covers {
            table::attach(&copy, at);
        }
    }
}

fn copies(from: &Path, recursive: bool) -> Result<Vec<Copy>> {
    if !table::is_in_tree(&from.mount) || from.mount.has(MountFlags::UNBINDABLE) {
        return Err(Error::Invalid);
    }
    table::select(&from.mount);
    let count = if recursive {
        table::selected().count()
    } else {
        1
    };
    let mut copies = fallible::vec(count)?;
    copies.push(Copy {
        of: from.mount.clone(),
        copy: copy_of(&from.mount, from)?,
        covers: None,
    });
    for below in table::selected().skip(1).take(count - 1) {
        if let Some(copy) = copy_below(&below, &copies)? {
            copies.push(copy);
        }
    }
    Ok(copies)
}

/// The copy of a mount whose parent was copied where it covers something.
fn copy_below(mount: &Arc<Mount>, copies: &[Copy]) -> Result<Option<Copy>> {
    let Some(covered) = mount.covers() else {
        return Ok(None);
    };
    let is_parent = |copy: &&Copy| Arc::ptr_eq(&copy.of, &covered.mount);
    let Some(parent) = copies.iter().find(is_parent) else {
        return Ok(None);
    };
    let is_shown = parent.copy.root.is_above(&covered.dentry);
    if !is_shown || mount.has(MountFlags::UNBINDABLE) {
        return Ok(None);
    }
    Ok(Some(Copy {
        of: mount.clone(),
        copy: copy_of(mount, &Path::top_of(mount))?,
        covers: Some(Path {
            mount: parent.copy.clone(),
            dentry: covered.dentry,
        }),
    }))
}

fn copy_of(mount: &Mount, from: &Path) -> Result<Arc<Mount>> {
    let (block, source) = (mount.block.clone(), mount.source.clone());
    let copy = Mount::new(block, from.dentry.clone(), source, mount.flags());
    Ok(fallible::arc(copy)?)
}
