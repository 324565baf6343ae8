//! Mounts that hang together, before they have their place.

use alloc::sync::Arc;
use alloc::vec::Vec;

use mach::mem::fallible;
use sync::{Error, Result};

use super::Dentry;
use super::propagation::Propagation;
use super::table;
use super::{Mount, MountFlags, Path};

/// A mount, and what it covers: which part of the tree, and where.
pub(super) struct Part {
    pub mount: Arc<Mount>,
    pub covers: Option<(usize, Arc<Dentry>)>,
}

/// Mounts, each behind the one that it covers; the first is the top and covers nothing here.
pub(super) struct Tree(Vec<Part>);

/// What is copied of mounts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Extent {
    /// The top alone.
    Top,
    /// What is mounted below too, but for mounts that forbid it.
    Bindable,
    /// All.
    Everything,
}

/// A tree of copies, and the mounts that they are copies of.
pub(super) struct Copied {
    pub tree: Tree,
    pub of: Vec<Arc<Mount>>,
}

impl Tree {
    /// One mount.
    ///
    /// Errors: `OutOfMemory`.
    pub fn of(mount: Arc<Mount>) -> Result<Self> {
        let mut parts = fallible::vec(1)?;
        let covers = None;
        parts.push(Part { mount, covers });
        Ok(Self(parts))
    }

    /// `top` and all that is mounted below.
    ///
    /// Errors: `OutOfMemory`.
    pub fn below(top: &Arc<Mount>) -> Result<Self> {
        table::select(top);
        let mut parts: Vec<Part> = fallible::vec(table::selected().count())?;
        for mount in table::selected() {
            let covers = mount.covers().and_then(|at| {
                let is_parent = |part: &Part| Arc::ptr_eq(&part.mount, &at.mount);
                Some((parts.iter().position(is_parent)?, at.dentry))
            });
            parts.push(Part { mount, covers });
        }
        Ok(Self(parts))
    }

    /// A copy of what is at `from`, whose mounts are in the groups of those that they are copied
    /// from.
    ///
    /// Errors: `OutOfMemory`.
    pub fn copy_of(from: &Path, extent: Extent) -> Result<Copied> {
        let all = Self::below(&from.mount)?;
        let count = match extent {
            Extent::Top => 1,
            Extent::Bindable | Extent::Everything => all.len(),
        };
        let mut copied = Copied {
            tree: Self(fallible::vec(count)?),
            of: fallible::vec(count)?,
        };
        copied.add(&from.mount, from.dentry.clone(), None)?;
        for part in all.0.iter().take(count).skip(1) {
            let is_left_out = part.mount.has(MountFlags::UNBINDABLE);
            if let Some((parent, at)) = &part.covers
                && !(is_left_out && extent == Extent::Bindable)
                && let Some(covers) = copied.shows(all.mount(*parent), at)
            {
                copied.add(&part.mount, part.mount.root.clone(), Some(covers))?;
            }
        }
        Ok(copied)
    }

    /// A copy for one of those who are told of it; `propagation` says what each mount is.
    ///
    /// Errors: `OutOfMemory`.
    pub fn copy_as(&self, propagation: impl Fn(usize) -> Propagation) -> Result<Self> {
        let mut parts = fallible::vec(self.len())?;
        for (index, part) in self.0.iter().enumerate() {
            let mount = part.mount.copy(part.mount.root.clone())?;
            mount.set_propagation(propagation(index));
            mount.set_unbindable(false);
            let covers = part.covers.clone();
            parts.push(Part { mount, covers });
        }
        Ok(Self(parts))
    }

    /// How many mounts it has.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Its mounts.
    pub fn mounts(&self) -> impl Iterator<Item = &Arc<Mount>> {
        self.0.iter().map(|part| &part.mount)
    }

    fn mount(&self, index: usize) -> &Arc<Mount> {
        &self.0[index].mount
    }

    /// The mount that is to cover a place.
    pub fn top(&self) -> &Arc<Mount> {
        self.mount(0)
    }

    /// Lists all mounts, and puts them together; there is room for them.
    pub fn list(&self) {
        for part in &self.0 {
            table::add(&part.mount);
            if let Some((parent, dentry)) = &part.covers {
                let (mount, dentry) = (self.mount(*parent).clone(), dentry.clone());
                table::attach(&part.mount, Path { mount, dentry });
            }
        }
    }
}

impl Copied {
    fn add(
        &mut self,
        mount: &Arc<Mount>,
        root: Arc<Dentry>,
        covers: Option<(usize, Arc<Dentry>)>,
    ) -> Result<()> {
        let copy = mount.copy(root)?;
        copy.set_propagation(mount.propagation());
        self.tree.0.push(Part {
            mount: copy,
            covers,
        });
        self.of.push(mount.clone());
        Ok(())
    }

    /// The copy of `parent`, if it shows `at`.
    fn shows(&self, parent: &Arc<Mount>, at: &Arc<Dentry>) -> Option<(usize, Arc<Dentry>)> {
        let index = self.of.iter().position(|of| Arc::ptr_eq(of, parent))?;
        let is_shown = self.tree.mount(index).root.is_above(at);
        is_shown.then(|| (index, at.clone()))
    }

    /// The copy of a mount.
    pub fn counterpart(&self, mount: &Arc<Mount>) -> Option<Arc<Mount>> {
        let index = self.of.iter().position(|of| Arc::ptr_eq(of, mount))?;
        Some(self.tree.mount(index).clone())
    }
}

impl Mount {
    /// A mount of the same with `root` as its top, at no place yet and in no group.
    fn copy(&self, root: Arc<Dentry>) -> Result<Arc<Self>> {
        let (block, source) = (self.block.clone(), self.source.clone());
        fallible::arc(Self::new(block, root, source, self.flags())).map_err(Error::from)
    }
}
