//! New files, and whose they are.

use alloc::sync::Arc;

use fs_host::Remote;
use fuse::{Caller, Entry, Request, SetAttributes, What};
use sync::{Error, Result};
use vfs::set_ids::SET_IDS;
use vfs::{FileType, New};

use crate::answer::Answer;
use crate::attributes::MODE_BITS;
use crate::inode::{EXCL, Inode, Node, RDWR};
use crate::volume::Handle;

impl Inode {
    /// Makes a file that belongs to whom `new` says. A daemon without that right (one of a host's ordinary user) makes it
    /// its own, without set-id bits, and gives it away if it may.
    pub(crate) fn make(&self, name: &[u8], new: &New<'_>) -> Result<Arc<Node>> {
        let owner = Caller {
            uid: new.uid,
            gid: new.gid,
            pid: 0,
        };
        match self.make_for(owner, name, new) {
            // EINVAL: its namespace has no such user.
            Err(Error::NotPermitted | Error::Invalid) if owner != Caller::default() => {
                let mode = match new.kind {
                    FileType::Directory => new.mode,
                    _ => new.mode & !SET_IDS,
                };
                let node = self.make_for(Caller::default(), name, &New { mode, ..*new })?;
                node.remote.give_to(new)?;
                Ok(node)
            }
            made => made,
        }
    }

    fn make_for(&self, owner: Caller, name: &[u8], new: &New<'_>) -> Result<Arc<Node>> {
        let mode = new.mode & MODE_BITS;
        let request = match new.kind {
            FileType::Regular => Request::Create {
                name,
                // Another's file would be open without a look at its mode.
                flags: RDWR | EXCL,
                mode: new.kind as u32 | mode,
            },
            FileType::Directory => Request::Mkdir { name, mode },
            FileType::Symlink => Request::Symlink {
                name,
                target: new.target,
            },
            kind => Request::Mknod {
                name,
                mode: kind as u32 | mode,
                device: u32::try_from(new.device).map_err(|_| Error::Invalid)?,
            },
        };
        match self.call_for(owner, request)? {
            Answer::Entry(entry) => self.made(&entry, new),
            Answer::Created(entry, handle) => {
                // Closed again if the node is none.
                let handle = Handle::new(&self.volume, entry.node, What::File, handle, true);
                let node = self.made(&entry, new)?;
                node.remote.is_open_as(handle);
                Ok(node)
            }
            _ => Err(Error::Io),
        }
    }

    /// The node that was made, which is what was asked for.
    fn made(&self, entry: &Entry, new: &New<'_>) -> Result<Arc<Node>> {
        let node = self.volume.node(entry)?;
        match node.remote.identity().kind == new.kind {
            true => Ok(node),
            false => Err(Error::Io),
        }
    }

    fn give_to(&self, new: &New<'_>) -> Result<()> {
        let owner = SetAttributes {
            uid: Some(new.uid),
            gid: Some(new.gid),
            ..SetAttributes::default()
        };
        match self.set(owner) {
            Err(Error::NotPermitted | Error::Invalid) => return Ok(()),
            result => result?,
        }
        self.set(SetAttributes {
            mode: Some(new.kind as u32 | new.mode & MODE_BITS),
            ..SetAttributes::default()
        })
    }
}
