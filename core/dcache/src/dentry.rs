//! One name of one inode.

use alloc::boxed::Box;
use alloc::sync::Arc;

use base::lock::{Count, Flag, Lock};

use crate::directory::Directory;
use crate::host::{CountOf, FlagOf, Host, LockOf};

/// A name without slashes.
pub type Name = Arc<[u8]>;

struct Place<H: Host> {
    parent: Option<Arc<Dentry<H>>>,
    name: Name,
}

/// One name of an inode.
pub struct Dentry<H: Host> {
    inode: H::Inode,
    kind: H::Kind,
    place: LockOf<H, Place<H>>,
    pub(crate) directory: Option<Box<Directory<H>>>,
    pub(crate) keeps_names: bool,
    /// Mounts that cover it.
    mounts: CountOf<H>,
    /// Known by its directory although that asks for its names each time.
    pub(crate) is_pinned: FlagOf<H>,
    is_gone: FlagOf<H>,
    /// Its name was the last one of its file.
    was_last: FlagOf<H>,
}

impl<H: Host> Dentry<H> {
    /// The top of a file system, or a file without a name (`name` is for people).
    pub fn root(inode: H::Inode, name: &[u8], keeps_names: bool) -> Arc<Self> {
        let place = Place {
            parent: None,
            name: name.into(),
        };
        Self::new(inode, place, keeps_names)
    }

    /// A file that no directory names; `label` is for people.
    pub fn nameless(inode: H::Inode, label: &[u8]) -> Arc<Self> {
        let dentry = Self::root(inode, label, true);
        dentry.set_gone();
        dentry
    }

    /// A name below `self` that is not (or no longer) listed.
    pub fn detached(self: &Arc<Self>, name: &[u8], inode: H::Inode) -> Arc<Self> {
        let place = Place {
            parent: Some(self.clone()),
            name: name.into(),
        };
        Self::new(inode, place, self.keeps_names)
    }

    fn new(inode: H::Inode, place: Place<H>, keeps_names: bool) -> Arc<Self> {
        let kind = H::kind(&inode);
        Arc::new(Self {
            inode,
            kind,
            place: LockOf::<H, _>::new(place),
            directory: H::is_directory(kind).then(Box::default),
            keeps_names,
            mounts: CountOf::<H>::default(),
            is_pinned: FlagOf::<H>::default(),
            is_gone: FlagOf::<H>::default(),
            was_last: FlagOf::<H>::default(),
        })
    }

    /// What the name means; never changes.
    #[inline]
    pub fn inode(&self) -> &H::Inode {
        &self.inode
    }

    /// What kind of file it is.
    #[inline]
    pub fn kind(&self) -> H::Kind {
        self.kind
    }

    /// Whether it is a directory.
    #[inline]
    pub fn is_directory(&self) -> bool {
        self.directory.is_some()
    }

    /// The directory it is in; `None` at the top of a file system.
    pub fn parent(&self) -> Option<Arc<Self>> {
        self.place.lock().parent.clone()
    }

    /// Its name.
    pub fn name(&self) -> Name {
        self.place.lock().name.clone()
    }

    /// The name was moved: from now on it is `name` in `parent`.
    pub fn move_to(self: &Arc<Self>, parent: &Arc<Self>, name: &[u8]) {
        let moved = Place {
            parent: Some(parent.clone()),
            name: name.into(),
        };
        let old = core::mem::replace(&mut *self.place.lock(), moved);
        drop(old);
    }

    /// Whether `self` is `other` or lies above it.
    pub fn is_above(self: &Arc<Self>, other: &Arc<Self>) -> bool {
        let mut at = Some(other.clone());
        while let Some(dentry) = at {
            if Arc::ptr_eq(&dentry, self) {
                return true;
            }
            at = dentry.parent();
        }
        false
    }

    /// Whether something may be mounted on it.
    #[inline]
    pub fn is_mounted_on(&self) -> bool {
        self.mounts.get() > 0
    }

    /// One mount more covers it.
    pub fn mount_on(&self) {
        self.mounts.add(1);
    }

    /// One less.
    pub fn unmount_from(self: &Arc<Self>) {
        self.mounts.sub(1);
        if !self.keeps_names {
            self.unpin();
        }
    }

    /// Whether the name was removed.
    #[inline]
    pub fn is_gone(&self) -> bool {
        self.is_gone.get()
    }

    /// It was.
    pub fn set_gone(&self) {
        self.is_gone.set(true);
    }

    /// The name that was removed was the last one of its file, which ends with whoever has it open.
    pub fn set_last(&self) {
        self.was_last.set(true);
    }
}

impl<H: Host> Drop for Dentry<H> {
    /// The last holder of a name may be the last holder of all names above it: they go one
    /// by one, as a recursion could exhaust the kernel's stack.
    fn drop(&mut self) {
        if self.was_last.get() {
            H::ended(&self.inode);
        }
        let mut next = self.place.lock().parent.take();
        while let Some(parent) = next {
            next = Arc::into_inner(parent).and_then(|parent| parent.place.lock().parent.take());
        }
    }
}
