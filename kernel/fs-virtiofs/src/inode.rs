//! An inode of the host: the daemon's number of it, and what it has open.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicU64, Ordering};

use fs_host::{Bytes, Holes, Identity, Name, Remote};
use fuse::{Caller, NodeId, Request, SetAttributes, What};
use sync::{Error, Mutex, Result};
use vfs::extended::Extended;
use vfs::{Change, FileType, Metadata, New};

use crate::answer::Answer;
use crate::attributes::set_of;
use crate::volume::{Handle, Volume};

/// Linux's numbers, as the protocol wants them.
const RDONLY: u32 = 0;
pub(crate) const RDWR: u32 = 2;
pub(crate) const EXCL: u32 = 0o200;
const DIRECTORY: u32 = 0o200000;
const RENAME_EXCHANGE: u32 = 2;

/// An inode of a folder as the kernel has it.
pub(crate) type Node = fs_host::Node<Inode>;

/// A file, directory or link of the host.
pub(crate) struct Inode {
    pub(crate) volume: Arc<Volume>,
    id: NodeId,
    /// How many entries named it.
    lookups: AtomicU64,
    identity: Identity,
    /// The same file, open at the daemon; from the first open file on.
    open: Mutex<Option<Arc<Handle>>>,
}

impl Inode {
    /// That which `lookups` entries have named so far.
    pub(crate) fn new(volume: &Arc<Volume>, id: NodeId, lookups: u64, found: &Metadata) -> Self {
        Self {
            volume: volume.clone(),
            id,
            lookups: AtomicU64::new(lookups),
            identity: Identity::of(found),
            open: Mutex::new(None),
        }
    }

    /// One more entry named it.
    pub(crate) fn count(&self) {
        self.lookups.fetch_add(1, Ordering::Relaxed);
    }

    fn what(&self) -> What {
        match self.identity.kind {
            FileType::Directory => What::Directory,
            _ => What::File,
        }
    }

    /// Asks the daemon for the thread that runs.
    pub(crate) fn call(&self, request: Request<'_>) -> Result<Answer> {
        self.volume.call(self.id, request)
    }

    /// Asks the daemon for somebody.
    pub(crate) fn call_for(&self, caller: Caller, request: Request<'_>) -> Result<Answer> {
        self.volume.call_for(caller, self.id, request)
    }

    /// The file is open already, as it was made.
    pub(crate) fn is_open_as(&self, handle: Arc<Handle>) {
        let other = self.open.lock().replace(handle);
        drop(other);
    }

    fn open_with(&self, flags: u32) -> Result<Arc<Handle>> {
        let what = self.what();
        match self.call(Request::Open { what, flags })? {
            Answer::Open(number) => {
                let is_writable = flags & RDWR != 0;
                Ok(Handle::new(
                    &self.volume,
                    self.id,
                    what,
                    number,
                    is_writable,
                ))
            }
            _ => Err(Error::Io),
        }
    }

    /// The open file at the daemon; opened for writing too, if that is allowed.
    pub(crate) fn opened(&self) -> Result<Arc<Handle>> {
        let mut open = self.open.lock();
        if let Some(handle) = &*open {
            return Ok(handle.clone());
        }
        let handle = match self.what() {
            What::Directory => self.open_with(RDONLY | DIRECTORY)?,
            What::File => match self.open_with(RDWR) {
                // EPERM: the host has made it immutable.
                Err(
                    Error::AccessDenied | Error::NotPermitted | Error::ReadOnly | Error::TextBusy,
                ) => self.open_with(RDONLY)?,
                opened => opened?,
            },
        };
        *open = Some(handle.clone());
        Ok(handle)
    }

    /// The same for who writes: what could only be read when it was opened is tried again.
    pub(crate) fn opened_to_write(&self) -> Result<Arc<Handle>> {
        let handle = self.opened()?;
        if handle.is_writable {
            return Ok(handle);
        }
        let handle = self.open_with(RDWR)?;
        self.is_open_as(handle.clone());
        Ok(handle)
    }

    pub(crate) fn set(&self, set: SetAttributes) -> Result<()> {
        self.call(Request::Setattr { set }).map(drop)
    }

    /// Reads what it has open.
    fn read(&self, offset: u64, count: usize) -> Result<Answer> {
        let handle = self.opened()?;
        self.call(Request::Read {
            what: self.what(),
            handle: handle.number,
            offset,
            count: count as u32,
        })
    }
}

impl Drop for Inode {
    fn drop(&mut self) {
        self.volume.forget(self.id, *self.lookups.get_mut());
    }
}

impl Bytes for Inode {
    fn io_bytes(&self) -> usize {
        self.volume.io_bytes
    }

    fn ask(&self, offset: u64, count: usize) -> Result<Vec<u8>> {
        match self.read(offset, count)? {
            Answer::Data(data) => Ok(data),
            _ => Err(Error::Io),
        }
    }

    fn tell(&self, offset: u64, data: &[u8]) -> Result<usize> {
        let handle = self.opened_to_write()?;
        let request = Request::Write {
            handle: handle.number,
            offset,
            data,
        };
        match self.call(request)? {
            Answer::Written(count) => Ok(count),
            _ => Err(Error::Io),
        }
    }
}

impl Remote for Inode {
    fn identity(&self) -> &Identity {
        &self.identity
    }

    fn metadata(&self) -> Result<Metadata> {
        self.volume.metadata(self.id)
    }

    fn open(&self) -> Result<()> {
        self.opened().map(drop)
    }

    fn change(&self, change: &Change) -> Result<()> {
        let set = set_of(self.identity.kind, change);
        if set == SetAttributes::default() {
            return Ok(());
        }
        self.set(set)
    }

    fn resize(&self, size: u64) -> Result<()> {
        let open = self.open.lock().clone();
        // Who opened it to write may, whatever its mode says by now.
        let open = open.as_ref().filter(|open| open.is_writable);
        self.set(SetAttributes {
            size: Some(size),
            handle: open.map(|open| open.number),
            ..SetAttributes::default()
        })
    }

    fn make_durable(&self, data_only: bool) -> Result<()> {
        let (what, handle) = (self.what(), self.opened()?);
        self.call(Request::Fsync {
            what,
            handle: handle.number,
            data_only,
        })
        .map(drop)
    }

    fn names(&self, offset: u64) -> Result<Vec<Name>> {
        match self.read(offset, self.volume.io_bytes)? {
            Answer::Names(names) => Ok(names),
            _ => Err(Error::Io),
        }
    }

    fn lookup(&self, name: &[u8]) -> Result<Arc<Node>> {
        match self.call(Request::Lookup { name })? {
            Answer::Entry(entry) => self.volume.node(&entry),
            _ => Err(Error::Io),
        }
    }

    fn create(&self, name: &[u8], new: &New<'_>) -> Result<Arc<Node>> {
        self.make(name, new)
    }

    fn link(&self, name: &[u8], target: &Self) -> Result<()> {
        let old = target.id;
        match self.call(Request::Link { old, name })? {
            // The entry has counted the node once more.
            Answer::Entry(entry) => self.volume.node(&entry).map(drop),
            _ => Err(Error::Io),
        }
    }

    fn unlink(&self, name: &[u8]) -> Result<()> {
        self.call(Request::Unlink { name }).map(drop)
    }

    fn rmdir(&self, name: &[u8]) -> Result<()> {
        self.call(Request::Rmdir { name }).map(drop)
    }

    fn rename(&self, name: &[u8], to: &Self, to_name: &[u8], exchange: bool) -> Result<()> {
        let request = Request::Rename {
            name,
            to: to.id,
            new_name: to_name,
            flags: if exchange { RENAME_EXCHANGE } else { 0 },
        };
        self.call(request).map(drop)
    }

    fn read_link(&self) -> Result<Vec<u8>> {
        match self.call(Request::Readlink)? {
            Answer::Data(target) => Ok(target),
            _ => Err(Error::Io),
        }
    }

    fn holes(&self) -> Option<&dyn Holes> {
        Some(self)
    }

    fn extended(&self) -> Option<&dyn Extended> {
        Some(self)
    }
}
