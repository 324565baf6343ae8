//! An inode of the host: a fid that names it, and one that has it open.

use alloc::sync::Arc;
use alloc::vec::Vec;

use fs_host::{Bytes, Identity, Name, Remote};
use ninep::{Fid, Request, SetAttributes};
use sync::{Error, Mutex, Result};
use vfs::{Change, FileType, Metadata, New};

use super::answer::Answer;
use super::attributes::set_of;
use super::volume::{Handle, Volume};

/// Open flags and unlink flags, in Linux's numbers as the protocol wants them.
const RDONLY: u32 = 0;
pub(super) const RDWR: u32 = 2;
pub(super) const EXCL: u32 = 0o200;
const DIRECTORY: u32 = 0o200000;
const REMOVE_DIRECTORY: u32 = 0x200;

/// An inode of a volume as the kernel has it.
pub(super) type Node = fs_host::Node<Inode>;

/// A file, directory or link of the host.
pub(super) struct Inode {
    pub(super) volume: Arc<Volume>,
    handle: Handle,
    identity: Identity,
    /// The same file, open on the host; from the first open file on.
    open: Mutex<Option<Arc<Handle>>>,
}

impl Inode {
    pub(super) fn new(volume: &Arc<Volume>, handle: Handle, found: &Metadata) -> Self {
        Self {
            volume: volume.clone(),
            handle,
            identity: Identity::of(found),
            open: Mutex::new(None),
        }
    }

    /// Whether its fid names this file, and no other that took its path when it was removed.
    pub(super) fn is_still_there(&self) -> bool {
        self.metadata().is_ok_and(|found| self.identity.is(&found))
    }

    /// Whether its path is another file's by now, which a server that goes by paths (QEMU before 10.1) would change.
    fn is_replaced(&self) -> bool {
        let found = self.volume.metadata(self.fid());
        found.is_ok_and(|found| !self.identity.is(&found))
    }

    pub(super) fn fid(&self) -> Fid {
        self.handle.fid()
    }

    /// A fid of its own for it.
    pub(super) fn duplicate(&self) -> Result<Handle> {
        self.volume.duplicate(&self.handle)
    }

    /// That of the open file, which names it even if it has no name any more; else its own.
    fn best_fid(&self) -> Fid {
        let open = self.open.lock().clone();
        open.as_ref().map_or(self.fid(), |handle| handle.fid())
    }

    /// The file is open already, as it was made.
    pub(super) fn is_open_as(&self, handle: Handle) {
        self.open.lock().get_or_insert_with(|| Arc::new(handle));
    }

    /// The open file on the host; opened for writing too, if that is allowed.
    fn opened(&self) -> Result<Arc<Handle>> {
        let mut open = self.open.lock();
        if let Some(handle) = &*open {
            return Ok(handle.clone());
        }
        let handle = Arc::new(self.duplicate()?);
        let lopen = |flags| {
            self.volume.call(&Request::Lopen {
                fid: handle.fid(),
                flags,
            })
        };
        if self.identity.kind == FileType::Directory {
            lopen(RDONLY | DIRECTORY)?;
        } else if self.volume.is_immutable {
            lopen(RDONLY)?;
        } else if let Err(error) = lopen(RDWR) {
            match error {
                Error::AccessDenied | Error::NotPermitted | Error::ReadOnly | Error::TextBusy => {
                    lopen(RDONLY)?
                }
                error => return Err(error),
            };
        }
        *open = Some(handle.clone());
        Ok(handle)
    }

    pub(super) fn set(&self, set: SetAttributes) -> Result<()> {
        let is_open = self.open.lock().is_some();
        if is_open && self.is_replaced() {
            return Err(Error::NotFound);
        }
        let fid = self.best_fid();
        self.volume.call(&Request::Setattr { fid, set }).map(drop)
    }

    fn remove(&self, name: &[u8], flags: u32) -> Result<()> {
        let dir = self.fid();
        let request = Request::Unlinkat { dir, name, flags };
        self.volume.call(&request).map(drop)
    }
}

impl Bytes for Inode {
    fn io_bytes(&self) -> usize {
        self.volume.io_bytes()
    }

    fn ask(&self, offset: u64, count: usize) -> Result<Vec<u8>> {
        let (fid, count) = (self.opened()?.fid(), count as u32);
        match self.volume.call(&Request::Read { fid, offset, count })? {
            Answer::Data(data) => Ok(data),
            _ => Err(Error::Io),
        }
    }

    fn tell(&self, offset: u64, data: &[u8]) -> Result<usize> {
        let fid = self.opened()?.fid();
        match self.volume.call(&Request::Write { fid, offset, data })? {
            Answer::Written(count) => Ok(count),
            _ => Err(Error::Io),
        }
    }
}

impl Remote for Inode {
    fn identity(&self) -> &Identity {
        &self.identity
    }

    fn is_immutable(&self) -> bool {
        self.volume.is_immutable
    }

    fn metadata(&self) -> Result<Metadata> {
        self.volume.metadata(self.best_fid())
    }

    fn open(&self) -> Result<()> {
        self.opened().map(drop)
    }

    fn change(&self, change: &Change) -> Result<()> {
        self.set(set_of(self.identity.kind, change))
    }

    fn resize(&self, size: u64) -> Result<()> {
        self.set(SetAttributes {
            size: Some(size),
            ..SetAttributes::default()
        })
    }

    fn make_durable(&self, data_only: bool) -> Result<()> {
        let fid = self.opened()?.fid();
        let request = Request::Fsync { fid, data_only };
        self.volume.call(&request).map(drop)
    }

    fn names(&self, offset: u64) -> Result<Vec<Name>> {
        let fid = self.opened()?.fid();
        let count = self.volume.io_bytes() as u32;
        match self.volume.call(&Request::Readdir { fid, offset, count })? {
            Answer::Names(names) => Ok(names),
            _ => Err(Error::Io),
        }
    }

    fn lookup(&self, name: &[u8]) -> Result<Arc<Node>> {
        self.volume.lookup(&self.handle, name)
    }

    fn create(&self, name: &[u8], new: &New<'_>) -> Result<Arc<Node>> {
        self.make(name, new)
    }

    fn link(&self, name: &[u8], target: &Self) -> Result<()> {
        let (dir, fid) = (self.fid(), target.fid());
        let request = Request::Link { dir, fid, name };
        self.volume.call(&request).map(drop)
    }

    fn unlink(&self, name: &[u8]) -> Result<()> {
        self.remove(name, 0)
    }

    fn rmdir(&self, name: &[u8]) -> Result<()> {
        self.remove(name, REMOVE_DIRECTORY)
    }

    fn rename(&self, name: &[u8], to: &Self, to_name: &[u8], exchange: bool) -> Result<()> {
        if exchange {
            return Err(Error::Invalid);
        }
        let request = Request::Renameat {
            from: self.fid(),
            name,
            to: to.fid(),
            new_name: to_name,
        };
        self.volume.call(&request).map(drop)
    }

    fn read_link(&self) -> Result<Vec<u8>> {
        match self.volume.call(&Request::Readlink { fid: self.fid() })? {
            Answer::Data(target) => Ok(target),
            _ => Err(Error::Io),
        }
    }
}
