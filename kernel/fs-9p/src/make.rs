//! New files, and whose they are.

use alloc::sync::Arc;

use fs_host::Remote;
use ninep::{Request, SetAttributes};
use sync::{Error, Result};
use vfs::set_ids::SET_IDS;
use vfs::{FileType, New, device_parts};

use super::answer::Answer;
use super::attributes::{MODE_BITS, full_mode};
use super::inode::{EXCL, Inode, Node, RDWR};

impl Inode {
    /// The server makes it: the volume is attached as user 0, so it is root's at first. Only its
    /// owner gets set-id bits ([`Inode::give_to`]).
    pub(super) fn make(&self, name: &[u8], new: &New<'_>) -> Result<Arc<Node>> {
        let (dir, gid, mode) = (self.fid(), new.gid, first_mode(new));
        let (major, minor) = device_parts(new.device);
        let node_mode = new.kind as u32 | mode;
        let request = match new.kind {
            FileType::Regular => return self.make_file(name, new),
            FileType::Directory => Request::Mkdir {
                dir,
                name,
                mode,
                gid,
            },
            FileType::Symlink => Request::Symlink {
                dir,
                name,
                target: new.target,
                gid,
            },
            _ => Request::Mknod {
                dir,
                name,
                mode: node_mode,
                major,
                minor,
                gid,
            },
        };
        self.volume.call(&request)?;
        let node = self.lookup(name)?;
        node.remote.give_to(new)?;
        Ok(node)
    }

    /// Makes a file, which is open then.
    fn make_file(&self, name: &[u8], new: &New<'_>) -> Result<Arc<Node>> {
        // The fid of the directory becomes that of the open file.
        let handle = self.duplicate()?;
        let (fid, mode, gid) = (handle.fid(), first_mode(new), new.gid);
        let answer = self.volume.call(&Request::Lcreate {
            fid,
            name,
            flags: RDWR | EXCL,
            mode,
            gid,
        })?;
        let node = self.lookup(name)?;
        // Somebody at the host may have put another one there.
        if matches!(answer, Answer::Opened(qid) if qid.path == node.remote.identity().number) {
            node.remote.is_open_as(handle);
        }
        node.remote.give_to(new)?;
        Ok(node)
    }

    /// Gives a new file to its owner. A server that may not do that (QEMU as an ordinary
    /// user, without `mapped-xattr`) leaves it the host's user's, without set-id bits.
    fn give_to(&self, new: &New<'_>) -> Result<()> {
        if new.uid != 0 {
            let owner = SetAttributes {
                uid: Some(new.uid),
                ..SetAttributes::default()
            };
            match self.set(owner) {
                Err(Error::NotPermitted) => return Ok(()),
                result => result?,
            }
        }
        if first_mode(new) == new.mode & MODE_BITS {
            return Ok(());
        }
        self.set(SetAttributes {
            mode: Some(full_mode(self.identity().kind, new.mode)),
            ..SetAttributes::default()
        })
    }
}

/// The mode with which a file is made, before it is its owner's.
fn first_mode(new: &New<'_>) -> u32 {
    match new.kind {
        FileType::Directory => new.mode & MODE_BITS,
        _ => new.mode & MODE_BITS & !SET_IDS,
    }
}
