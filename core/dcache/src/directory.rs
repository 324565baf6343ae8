//! The names that a directory keeps.
//!
//! Walks of all CPUs meet at the same few directories. So those who only look share the lock, and
//! names are hashed and copied before it is taken.

use alloc::collections::LinkedList;
use alloc::sync::Arc;
use core::hash::BuildHasher;

use base::lock::{Count, Lock as _, RwLock};
use base::{Memory, NoMemory};
use hashbrown::{DefaultHashBuilder, HashTable};

use crate::host::{CountOf, Gate, Host, RwLockOf};
use crate::{Dentry, KEPT_MAX, Name};

/// A name and what it means.
pub(crate) struct Entry<H: Host> {
    hash: u64,
    name: Name,
    /// `None`: there is no such name.
    pub dentry: Option<Arc<Dentry<H>>>,
}

/// By the hashes of names.
pub(crate) type Children<H> = HashTable<Entry<H>>;
/// What was taken out of [`Children`], to be dropped without their lock. In small pieces,
/// as memory may be short.
pub(crate) type Forgotten<H> = LinkedList<Entry<H>>;

/// Names that a change of a directory may add: a rename two.
const ROOM: usize = 2;

pub(crate) struct Directory<H: Host> {
    pub children: RwLockOf<H, Children<H>>,
    hashes: DefaultHashBuilder,
    /// As many names as are kept without looking for unused ones.
    comfortable: CountOf<H>,
    pub changing: Gate<H>,
}

impl<H: Host> Default for Directory<H> {
    fn default() -> Self {
        let comfortable = CountOf::<H>::default();
        comfortable.set(KEPT_MAX);
        Self {
            children: RwLockOf::<H, _>::new(Children::new()),
            hashes: DefaultHashBuilder::default(),
            comfortable,
            changing: Gate::<H>::new(()),
        }
    }
}

impl<H: Host> Directory<H> {
    /// What a name is known to mean; the inner `None` says that there is no such name.
    #[inline]
    pub fn known(&self, name: &[u8]) -> Option<Option<Arc<Dentry<H>>>> {
        let hash = self.hashes.hash_one(name);
        let children = self.children.read();
        let entry = children.find(hash, |entry| *entry.name == *name)?;
        Some(entry.dentry.clone())
    }

    /// Notes what a name means; gives back what was noted before.
    pub fn note(&self, name: Name, dentry: Option<Arc<Dentry<H>>>) -> Option<Entry<H>> {
        let hash = self.hashes.hash_one(&*name);
        let entry = Entry { hash, name, dentry };
        let mut children = self.children.write();
        match children.find_mut(hash, |known| known.name == entry.name) {
            Some(known) => Some(core::mem::replace(known, entry)),
            None => {
                children.insert_unique(hash, entry, |entry| entry.hash);
                None
            }
        }
    }

    /// Notes nothing of a name any more; gives back what was noted before.
    pub fn forget(&self, name: &[u8]) -> Option<Entry<H>> {
        let hash = self.hashes.hash_one(name);
        let mut children = self.children.write();
        let known = children.find_entry(hash, |entry| *entry.name == *name);
        Some(known.ok()?.remove().0)
    }

    /// Makes room for the names that one change may add.
    pub fn make_room(&self) -> Result<(), NoMemory> {
        let mut children = self.children.write();
        let mut unused = Forgotten::new();
        if children.len() >= self.comfortable.get() {
            unused = take_unused(&mut children);
            self.comfortable.set(children.len() + KEPT_MAX);
        }
        let room = match children.capacity() - children.len() {
            0..ROOM => H::Memory::reserve(|| children.try_reserve(ROOM, |entry| entry.hash)),
            _ => Ok(()),
        };
        drop(children);
        drop(unused);
        room
    }
}

/// Takes out names that nobody uses, [`KEPT_MAX`] at most.
pub(crate) fn take_unused<H: Host>(children: &mut Children<H>) -> Forgotten<H> {
    let unused = children.extract_if(|entry| entry.dentry.as_ref().is_none_or(is_unused));
    unused.take(KEPT_MAX).collect()
}

/// Whether only its directory knows it, whose lock is held by nobody else: nobody comes to know it
/// meanwhile.
fn is_unused<H: Host>(dentry: &Arc<Dentry<H>>) -> bool {
    Arc::strong_count(dentry) == 1
}
