//! What a name means: known, or asked for and noted.

use alloc::sync::Arc;
use alloc::vec::Vec;

use base::lock::{Flag, Lock as _};
use base::{Memory, NoMemory};

use crate::directory::Directory;
use crate::host::{Guard, Host, Refusal};
use crate::{Dentry, NAME_BYTES_MAX};

/// Whether the heap has room for one dentry and its counts.
fn room_for_dentry<H: Host>() -> Result<(), NoMemory> {
    let mut trial = Vec::<([usize; 2], Dentry<H>)>::new();
    H::Memory::reserve(|| trial.try_reserve_exact(1))
}

impl<H: Host> Dentry<H> {
    /// The child of this name, `None` if there is no such name.
    pub fn child(self: &Arc<Self>, name: &[u8]) -> Result<Option<Arc<Self>>, H::Error> {
        let directory = self.names()?;
        if let Some(known) = directory.known(name) {
            return Ok(known);
        }
        let _changing = directory.changing.lock();
        self.child_while_locked(name)
    }

    /// [`Self::child`] for a caller that holds the directory's lock, and that may
    /// [`remember`](Self::remember) the name afterwards.
    pub fn child_while_locked(
        self: &Arc<Self>,
        name: &[u8],
    ) -> Result<Option<Arc<Self>>, H::Error> {
        let directory = self.names()?;
        if let Some(known) = directory.known(name) {
            return Ok(known);
        }
        if name.len() > NAME_BYTES_MAX {
            return Err(H::refuse(Refusal::NameTooLong));
        }
        let refused = |_| H::refuse(Refusal::NoMemory);
        directory.make_room().map_err(refused)?;
        let found = match H::look_up(self.inode(), name)? {
            Some(inode) => {
                room_for_dentry::<H>().map_err(refused)?;
                Some(self.detached(name, inode))
            }
            None => None,
        };
        // That a name is not there is worth no memory that others need.
        if found.is_some() || !H::is_memory_short() {
            self.remember(name, found.clone());
        }
        Ok(found)
    }

    /// Holds the directory still: no name in it changes meanwhile.
    pub fn lock_names(&self) -> Result<Guard<'_, H>, H::Error> {
        Ok(self.names()?.changing.lock())
    }

    /// Notes what a name means from now on, where only we change it, for a caller that holds the
    /// directory's lock; [`Self::child_while_locked`] made room.
    pub fn remember(&self, name: &[u8], dentry: Option<Arc<Self>>) {
        let Some(directory) = self.directory.as_ref() else {
            return;
        };
        let is_kept = self.keeps_names || dentry.as_ref().is_some_and(|one| one.is_pinned.get());
        let old = match &dentry {
            _ if !is_kept => directory.forget(name),
            Some(one) => directory.note(one.name(), dentry),
            None => directory.note(name.into(), None),
        };
        drop(old);
    }

    pub(crate) fn names(&self) -> Result<&Directory<H>, H::Error> {
        let directory = self.directory.as_deref();
        directory.ok_or_else(|| H::refuse(Refusal::NotDirectory))
    }
}
