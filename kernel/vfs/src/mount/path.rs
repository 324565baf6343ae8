//! Places in the tree, and what they are called.

use alloc::sync::Arc;
use alloc::vec::Vec;

use sync::Result;

use super::Dentry;
use super::dentry::Name;
use super::{MOST, Mount, root, table};
use crate::InodeRef;

/// A place in the tree.
#[derive(Clone)]
pub struct Path {
    /// The mount through which it was reached.
    pub mount: Arc<Mount>,
    /// The name.
    pub dentry: Arc<Dentry>,
}

/// Names of a path that are shown, from its end: longer paths are too long for all who ask
/// (PATH_MAX).
const SHOWN_MAX: usize = 2048;

/// The names on the way from a place up to a root.
struct PathNames {
    /// The last one first.
    names: Vec<Name>,
    /// Whether the way led to the root that was asked for.
    arrived: bool,
    /// Where it ended.
    end: Path,
}

impl Path {
    /// The top of `mount`.
    pub fn top_of(mount: &Arc<Mount>) -> Self {
        Self {
            mount: mount.clone(),
            dentry: mount.root.clone(),
        }
    }

    /// The name `dentry` on the same mount.
    pub fn sibling(&self, dentry: Arc<Dentry>) -> Self {
        Self {
            mount: self.mount.clone(),
            dentry,
        }
    }

    /// The place that walks find from now on where they found this one.
    ///
    /// Errors: `NotFound`, `OutOfMemory`.
    pub(super) fn pinned(self) -> Result<Self> {
        let dentry = self.dentry.pinned()?;
        Ok(self.sibling(dentry))
    }

    /// What is there.
    pub fn inode(&self) -> &InodeRef {
        self.dentry.inode()
    }

    /// Whether both are the same place.
    pub fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.dentry, &other.dentry) && Arc::ptr_eq(&self.mount, &other.mount)
    }

    /// Whether it is the top of its mount.
    pub fn is_mount_top(&self) -> bool {
        Arc::ptr_eq(&self.dentry, &self.mount.root)
    }

    /// The place one level up; at the top of the tree, itself.
    pub fn parent(&self) -> Self {
        let at = self.below_mounts();
        match at.dentry.parent() {
            Some(dentry) if !at.is_mount_top() => at.sibling(dentry),
            _ => at,
        }
    }

    /// The same place with what is mounted on it.
    pub fn enter_mounts(mut self) -> Self {
        while self.dentry.is_mounted_on() {
            match table::covering(&self) {
                Some(mount) => self = Self::top_of(&mount),
                None => break,
            }
        }
        self
    }

    /// The name from `root` on, as /proc shows it; from the top of its mount if no way leads
    /// up to `root`.
    pub fn name_from(&self, root: &Path) -> Vec<u8> {
        let climb = self.climb(root);
        match climb.names.is_empty() && !climb.end.is_mount_top() {
            // A file that never was in a directory: its name is for people.
            true => self.dentry.name().to_vec(),
            false => joined(&climb.names),
        }
    }

    /// The name from `root` on; `None` if no way leads up to it.
    pub fn name_below(&self, root: &Path) -> Option<Vec<u8>> {
        let climb = self.climb(root);
        climb.arrived.then(|| joined(&climb.names))
    }

    /// The name from the top of the tree.
    pub fn name(&self) -> Vec<u8> {
        let mut name = self.name_from(&root());
        if self.dentry.is_gone() {
            name.extend_from_slice(b" (deleted)");
        }
        name
    }

    /// The name in its file system, whatever is visible of that.
    pub fn name_in_system(&self) -> Vec<u8> {
        let mut names = Vec::new();
        let mut at = self.dentry.clone();
        while let Some(parent) = at.parent().filter(|_| names.len() < SHOWN_MAX) {
            names.push(at.name());
            at = parent;
        }
        joined(&names)
    }

    /// Whether `self` is `other` or above it, through mounts too.
    pub(super) fn is_above(&self, other: &Self) -> bool {
        let mut at = other.clone();
        while !Arc::ptr_eq(&at.mount, &self.mount) {
            match at.mount.covers() {
                Some(covered) => at = covered,
                None => return false,
            }
        }
        self.dentry.is_above(&at.dentry)
    }

    fn climb(&self, root: &Path) -> PathNames {
        let mut names = Vec::new();
        let mut at = self.clone();
        for _ in 0..SHOWN_MAX + MOST {
            if at.is(root) {
                break;
            }
            if at.is_mount_top() {
                match at.mount.covers() {
                    Some(covered) => at = covered,
                    None => break,
                }
            } else if let Some(parent) = at.dentry.parent() {
                names.push(at.dentry.name());
                at.dentry = parent;
            } else {
                break;
            }
        }
        let arrived = at.is(root);
        PathNames {
            names,
            arrived,
            end: at,
        }
    }

    /// The place under all mounts whose top this is.
    fn below_mounts(&self) -> Self {
        let mut at = self.clone();
        while at.is_mount_top() {
            match at.mount.covers() {
                Some(covered) => at = covered,
                None => break,
            }
        }
        at
    }
}

/// A path of these names, the last one first.
fn joined(names: &[Name]) -> Vec<u8> {
    let mut path = Vec::new();
    for name in names.iter().rev() {
        path.push(b'/');
        path.extend_from_slice(name);
    }
    if path.is_empty() {
        path.push(b'/');
    }
    path
}
