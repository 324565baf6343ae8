//! The cache of names: which inode a name in a directory means.
//!
//! A [`Dentry`] is one name of one inode. A directory's dentry keeps its children,
//! negative answers included, so that a path that was walked once is walked again
//! without asking the file system. A child holds its parent, so whoever holds a dentry
//! can tell its path. A removed name's dentry is detached, not changed: an open file
//! keeps its inode.
//!
//! Bounds: a directory that keeps more names than it lately needed drops those that nobody
//! uses, [`KEPT_MAX`] at a time; when memory is short all such names go (`forget_unused`).
//!
//! Lock order: a directory's `changing` (sleeps) is held over every change of its names
//! and every question to the file system; `children` and `place` are short spin locks,
//! never held together with those of another dentry.

use alloc::boxed::Box;
use alloc::collections::LinkedList;
use alloc::sync::Arc;
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};

use hashbrown::HashMap;
use mach::mem::fallible;
use mach::sync::Spin;
use sync::{Error, Mutex, Result};

use super::{FileType, InodeRef, notify};

/// A name without slashes.
pub type Name = Arc<[u8]>;

/// The longest name (`NAME_MAX` of Linux).
pub const NAME_BYTES_MAX: usize = 255;
/// Cached names of a directory at which the unused ones are dropped.
const KEPT_MAX: usize = 512;

struct Place {
    parent: Option<Arc<Dentry>>,
    name: Name,
}

/// Names and what they mean; `None` for a name that does not exist.
type Children = HashMap<Name, Option<Arc<Dentry>>>;
/// What was taken out of [`Children`], to be dropped without their lock. In small pieces,
/// as memory may be short.
type Forgotten = LinkedList<(Name, Option<Arc<Dentry>>)>;

struct Directory {
    children: Spin<Children>,
    /// As many names as are kept without looking for unused ones.
    comfortable: AtomicUsize,
    changing: Mutex<()>,
}

impl Directory {
    /// Makes room for two names more, which a rename needs at most.
    ///
    /// Errors: `OutOfMemory`.
    fn make_room(&self) -> Result<()> {
        let mut children = self.children.lock();
        let mut unused = Forgotten::new();
        if children.len() >= self.comfortable.load(Ordering::Relaxed) {
            unused = forget(&mut children);
            let comfortable = children.len() + KEPT_MAX;
            self.comfortable.store(comfortable, Ordering::Relaxed);
        }
        let room = match children.capacity() - children.len() {
            0..2 => fallible::reserve(|| children.try_reserve(2)),
            _ => Ok(()),
        };
        drop(children);
        drop(unused);
        room.map_err(|_| Error::OutOfMemory)
    }
}

/// Takes out names that nobody uses, [`KEPT_MAX`] at most.
fn forget(children: &mut Children) -> Forgotten {
    let unused = children.extract_if(|_, kept| kept.as_ref().is_none_or(is_unused));
    unused.take(KEPT_MAX).collect()
}

/// One name of an inode.
pub struct Dentry {
    inode: InodeRef,
    kind: FileType,
    place: Spin<Place>,
    directory: Option<Box<Directory>>,
    keeps_names: bool,
    /// Mounts that cover it.
    mounts: AtomicU32,
    /// Known by its directory although that asks for its names each time.
    pinned: AtomicBool,
    gone: AtomicBool,
    /// Its name was the last one of its file.
    was_last: AtomicBool,
}

impl Dentry {
    /// The top of a file system, or a file without a name (`name` is for people).
    pub fn root(inode: InodeRef, name: &[u8], keeps_names: bool) -> Arc<Self> {
        Self::new(
            inode,
            Place {
                parent: None,
                name: name.into(),
            },
            keeps_names,
        )
    }

    /// A file that no directory names; `label` is for people.
    pub fn nameless(inode: InodeRef, label: &[u8]) -> Arc<Self> {
        let dentry = Self::root(inode, label, true);
        dentry.set_gone();
        dentry
    }

    fn new(inode: InodeRef, place: Place, keeps_names: bool) -> Arc<Self> {
        let kind = inode.kind();
        let directory = (kind == FileType::Directory).then(|| {
            Box::new(Directory {
                children: Spin::new(HashMap::new()),
                comfortable: AtomicUsize::new(KEPT_MAX),
                changing: Mutex::new(()),
            })
        });
        Arc::new(Self {
            inode,
            kind,
            place: Spin::new(place),
            directory,
            keeps_names,
            mounts: AtomicU32::new(0),
            pinned: AtomicBool::new(false),
            gone: AtomicBool::new(false),
            was_last: AtomicBool::new(false),
        })
    }

    /// A name below `self` that is not (or no longer) listed.
    pub fn detached(self: &Arc<Self>, name: &[u8], inode: InodeRef) -> Arc<Self> {
        let place = Place {
            parent: Some(self.clone()),
            name: name.into(),
        };
        Self::new(inode, place, self.keeps_names)
    }

    /// What the name means; never changes.
    pub fn inode(&self) -> &InodeRef {
        &self.inode
    }

    /// What kind of file it is.
    pub fn kind(&self) -> FileType {
        self.kind
    }

    /// Whether it is a directory.
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

    /// Whether something may be mounted on it.
    pub fn is_mounted_on(&self) -> bool {
        self.mounts.load(Ordering::Acquire) > 0
    }

    /// One mount more covers it.
    pub(super) fn mount_on(&self) {
        self.mounts.fetch_add(1, Ordering::AcqRel);
    }

    /// One less.
    pub(super) fn unmount_from(self: &Arc<Self>) {
        self.mounts.fetch_sub(1, Ordering::AcqRel);
        if !self.keeps_names {
            self.unpin();
        }
    }

    /// Whether the name was removed.
    pub fn is_gone(&self) -> bool {
        self.gone.load(Ordering::Acquire)
    }

    pub(super) fn set_gone(&self) {
        self.gone.store(true, Ordering::Release);
    }

    /// The name that was removed was the last one of its file, which ends with whoever has it open.
    pub(super) fn set_last(&self) {
        self.was_last.store(true, Ordering::Release);
    }

    /// The child of this name, `None` if there is no such name.
    pub fn child(self: &Arc<Self>, name: &[u8]) -> Result<Option<Arc<Self>>> {
        let directory = self.directory.as_ref().ok_or(Error::NotDirectory)?;
        if let Some(known) = directory.children.lock().get(name) {
            return Ok(known.clone());
        }
        let _changing = directory.changing.lock();
        self.child_while_locked(name)
    }

    /// [`Self::child`] for a caller that holds the directory's lock, and that may
    /// [`remember`](Self::remember) the name afterwards.
    pub fn child_while_locked(self: &Arc<Self>, name: &[u8]) -> Result<Option<Arc<Self>>> {
        let directory = self.directory.as_ref().ok_or(Error::NotDirectory)?;
        if let Some(known) = directory.children.lock().get(name) {
            return Ok(known.clone());
        }
        if name.len() > NAME_BYTES_MAX {
            return Err(Error::NameTooLong);
        }
        directory.make_room()?;
        let found = match self.inode.lookup(name) {
            Ok(inode) => {
                fallible::room_for_arc::<Self>()?;
                Some(self.detached(name, inode))
            }
            Err(Error::NotFound) => None,
            Err(error) => return Err(error),
        };
        // That a name is not there is worth no memory that others need.
        if found.is_some() || !mach::mem::is_short() {
            self.remember(name, found.clone());
        }
        Ok(found)
    }

    /// Holds the directory still: no name in it changes meanwhile.
    pub fn lock_names(&self) -> Result<sync::MutexGuard<'_, ()>> {
        let directory = self.directory.as_ref().ok_or(Error::NotDirectory)?;
        Ok(directory.changing.lock())
    }

    /// Notes what a name means from now on, where only we change it;
    /// [`Self::child_while_locked`] made room.
    pub(super) fn remember(&self, name: &[u8], dentry: Option<Arc<Self>>) {
        let Some(directory) = self.directory.as_ref() else {
            return;
        };
        let is_pinned = |child: &Arc<Self>| child.pinned.load(Ordering::Relaxed);
        let mut children = directory.children.lock();
        let old = match self.keeps_names || dentry.as_ref().is_some_and(is_pinned) {
            true => children.insert(name.into(), dentry),
            false => children.remove(name),
        };
        drop(children);
        drop(old);
    }

    /// Forgets names below that nobody uses, while there are not too many directories.
    pub(super) fn forget_unused(self: &Arc<Self>) {
        let mut pending = LinkedList::from([self.clone()]);
        while let Some(dentry) = pending.pop_back() {
            let Some(directory) = &dentry.directory else {
                continue;
            };
            loop {
                let unused = forget(&mut directory.children.lock());
                if unused.is_empty() {
                    break;
                }
            }
            let children = directory.children.lock();
            let below = children
                .values()
                .flatten()
                .filter(|child| child.is_directory());
            pending.extend(below.take(KEPT_MAX).cloned());
        }
    }

    /// Forgets all names below; breaks the cycles of an unmounted file system.
    pub(super) fn forget_all(self: &Arc<Self>) {
        let mut pending = LinkedList::from([self.take_children()]);
        while let Some(children) = pending.pop_front() {
            let below = children.into_values().flatten();
            let directories = below.filter(|child| child.is_directory());
            pending.extend(directories.map(|child| child.take_children()));
        }
    }

    fn take_children(&self) -> Children {
        let children = self.directory.as_ref().map(|directory| &directory.children);
        children.map_or_else(Children::new, |children| {
            core::mem::take(&mut *children.lock())
        })
    }

    /// The name was moved: from now on it is `name` in `parent`.
    pub(super) fn move_to(self: &Arc<Self>, parent: &Arc<Self>, name: &[u8]) {
        let moved = Place {
            parent: Some(parent.clone()),
            name: name.into(),
        };
        let old = core::mem::replace(&mut *self.place.lock(), moved);
        drop(old);
    }

    /// Whether `self` is `other` or lies above it.
    pub(super) fn is_above(self: &Arc<Self>, other: &Arc<Self>) -> bool {
        let mut at = Some(other.clone());
        while let Some(dentry) = at {
            if Arc::ptr_eq(&dentry, self) {
                return true;
            }
            at = dentry.parent();
        }
        false
    }
}

/// Where a file system's names are asked for each time, walks find a new dentry each time, but
/// a mount covers one of them. So that one and those above it are pinned: their directories
/// know them as long as something is mounted below.
impl Dentry {
    /// The dentry that walks find from now on where they found this one.
    ///
    /// Errors: `NotFound`, `OutOfMemory`.
    pub(super) fn pinned(self: &Arc<Self>) -> Result<Arc<Self>> {
        let mut chain = LinkedList::new();
        let mut at = self.clone();
        while let Some(parent) = at.parent().filter(|_| !self.keeps_names) {
            chain.push_front(core::mem::replace(&mut at, parent));
        }
        if self.keeps_names {
            return Ok(at);
        }
        for next in chain {
            match at.pin(&next) {
                Ok(child) => at = child,
                Err(error) => {
                    at.unpin();
                    return Err(error);
                }
            }
        }
        Ok(at)
    }

    /// Pins the child that `like` names: itself, unless another was pinned before.
    fn pin(self: &Arc<Self>, like: &Arc<Self>) -> Result<Arc<Self>> {
        let directory = self.directory.as_ref().ok_or(Error::NotDirectory)?;
        let name = like.name();
        let _changing = directory.changing.lock();
        if let Some(Some(known)) = directory.children.lock().get(&name) {
            return Ok(known.clone());
        }
        let is_own = like
            .parent()
            .is_some_and(|parent| Arc::ptr_eq(&parent, self));
        let child = match is_own {
            true => Some(like.clone()),
            false => self.child_while_locked(&name)?,
        };
        let child = child.ok_or(Error::NotFound)?;
        directory.make_room()?;
        child.pinned.store(true, Ordering::Relaxed);
        self.remember(&name, Some(child.clone()));
        Ok(child)
    }

    /// Nothing is mounted on it any more: it and those above go if nothing else keeps them.
    fn unpin(self: &Arc<Self>) {
        let mut at = self.clone();
        while !at.is_mounted_on() && !at.has_known_names() {
            let Some(parent) = at.parent() else {
                return;
            };
            at.pinned.store(false, Ordering::Relaxed);
            parent.remember(&at.name(), None);
            at = parent;
        }
    }

    fn has_known_names(&self) -> bool {
        let names = self.directory.as_ref().map(|directory| &directory.children);
        names.is_some_and(|names| !names.lock().is_empty())
    }
}

impl Drop for Dentry {
    /// The last holder of a name may be the last holder of all names above it: they go one
    /// by one, as a recursion could exhaust the kernel's stack.
    fn drop(&mut self) {
        if *self.was_last.get_mut() {
            notify::ended(&self.inode);
        }
        let mut next = self.place.lock().parent.take();
        while let Some(parent) = next {
            next = Arc::into_inner(parent).and_then(|parent| parent.place.lock().parent.take());
        }
    }
}

/// Whether only its directory knows it.
fn is_unused(dentry: &Arc<Dentry>) -> bool {
    Arc::strong_count(dentry) == 1
}
