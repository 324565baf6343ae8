//! Mount namespaces (mount_namespaces(7)): programs of each see a tree of mounts of its own.
//!
//! A namespace is the top of a tree, a mount that nobody sees. A new one is a copy of the
//! maker's: of all mounts, each in the peer group of that which it is a copy of. When no
//! program and no descriptor is left that holds it, its mounts go.
//!
//! Programs hold their namespace by the context that says where they stand (`vfs::context`), as
//! root and working directory are places in it.

use alloc::sync::Arc;

use mach::mem::fallible;
use mach::sync::Once;
use sync::Result;

use super::context;
use super::table::{self, CHANGING};
use super::tree::{Copied, Extent, Tree};
use super::{Mount, Path};
use crate::file::next_namespace_number;

/// A tree of mounts.
pub struct Namespace {
    /// Its inode number.
    pub number: u64,
    top: Arc<Mount>,
}

/// That of the machine's first program; other programs may hold others.
static FIRST: Once<Arc<Namespace>> = Once::new();

/// The namespace of the first program.
pub(super) fn begin(top: &Arc<Mount>) {
    FIRST.call_once(|| Arc::new(Namespace::at(top)));
}

/// The same.
pub fn first() -> Arc<Namespace> {
    match FIRST.get() {
        Some(first) => first.clone(),
        None => unreachable!("boot mounts the root before it starts a program"),
    }
}

/// Where all ways up end for the current thread.
pub(super) fn own_top() -> Arc<Mount> {
    context().namespace().top.clone()
}

impl Namespace {
    fn at(top: &Arc<Mount>) -> Self {
        Self {
            number: next_namespace_number(),
            top: top.clone(),
        }
    }

    /// What its programs know as `/`, unless they were given another root.
    pub fn root(&self) -> Path {
        Path::top_of(&self.top).enter_mounts()
    }

    /// A copy, and where in it the mounts are that were copied.
    ///
    /// Errors: `NoSpace` if there are too many mounts, `OutOfMemory`.
    pub fn copy(&self) -> Result<(Arc<Self>, Counterparts)> {
        let _still = CHANGING.lock();
        let copied = Tree::copy_of(&Path::top_of(&self.top), Extent::Everything)?;
        fallible::room_for_arc::<Self>()?;
        table::reserve(copied.tree.len(), copied.tree.len())?;
        copied.tree.list();
        let new = Arc::new(Self::at(copied.tree.top()));
        Ok((new, Counterparts(copied)))
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        let _still = CHANGING.lock();
        table::select(&self.top);
        table::remove_selected();
    }
}

/// Which mount of a new namespace is the copy of which.
pub struct Counterparts(Copied);

impl Counterparts {
    /// The same place in the new namespace; one that is not in the old namespace stays.
    pub fn of(&self, place: &Path) -> Path {
        let mount = self.0.counterpart(&place.mount);
        Path {
            mount: mount.unwrap_or_else(|| place.mount.clone()),
            dentry: place.dentry.clone(),
        }
    }
}
