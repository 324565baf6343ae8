//! Names under mounts, where a file system's names are asked for each time.
//!
//! Walks find a new dentry there each time, but a mount covers one of them. So that one and those
//! above it are pinned: their directories know them as long as something is mounted below. Whoever pins, mounts and unmounts does so one at
//! a time.

use alloc::collections::LinkedList;
use alloc::sync::Arc;

use base::lock::{Flag, Lock as _, RwLock as _};

use crate::Dentry;
use crate::host::{Host, Refusal};

impl<H: Host> Dentry<H> {
    /// The dentry that walks find from now on where they found this one.
    ///
    /// Errors: `NotFound`, `NoMemory`.
    pub fn pinned(self: &Arc<Self>) -> Result<Arc<Self>, H::Error> {
        if self.keeps_names {
            return Ok(self.clone());
        }
        let mut chain = LinkedList::new();
        let mut at = self.clone();
        while let Some(parent) = at.parent() {
            chain.push_front(core::mem::replace(&mut at, parent));
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
    fn pin(self: &Arc<Self>, like: &Arc<Self>) -> Result<Arc<Self>, H::Error> {
        let directory = self.names()?;
        let name = like.name();
        let _changing = directory.changing.lock();
        if let Some(Some(known)) = directory.known(&name) {
            return Ok(known);
        }
        let is_own = like
            .parent()
            .is_some_and(|parent| Arc::ptr_eq(&parent, self));
        let child = match is_own {
            true => Some(like.clone()),
            false => self.child_while_locked(&name)?,
        };
        let child = child.ok_or_else(|| H::refuse(Refusal::NotFound))?;
        let room = directory.make_room();
        room.map_err(|_| H::refuse(Refusal::NoMemory))?;
        child.is_pinned.set(true);
        self.remember(&name, Some(child.clone()));
        Ok(child)
    }

    /// Nothing is mounted on it any more: it and those above go if nothing else keeps them.
    pub(crate) fn unpin(self: &Arc<Self>) {
        let mut at = self.clone();
        while !at.is_mounted_on() && !at.has_known_names() {
            let Some(parent) = at.parent() else {
                return;
            };
            at.is_pinned.set(false);
            parent.remember(&at.name(), None);
            at = parent;
        }
    }

    fn has_known_names(&self) -> bool {
        let names = self.directory.as_ref().map(|directory| &directory.children);
        names.is_some_and(|names| !names.read().is_empty())
    }
}
