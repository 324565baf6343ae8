//! An inode of the host: its names and attributes are asked for each time.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::ops::Range;
use core::sync::atomic::{AtomicU64, Ordering};

use fs_host::{Name, SeenMode, timestamp};
use fuse::{Attributes, NodeId, Request, SetAttributes, SetTime, Time, What};
use kernel_pagecache::{self as pagecache, Cache};
use sync::{Error, Mutex, Result};
use vfs::extended::Extended;
use vfs::file::FileRef;
use vfs::inode::Emit;
use vfs::locks::FileLocks;
use vfs::{Attachment, Change, FileType, Inode, InodeRef, Metadata, New, Timestamp};

use crate::answer::Answer;
use crate::volume::{Handle, Volume};

/// Linux's numbers, as the protocol wants them.
const RDONLY: u32 = 0;
pub(crate) const RDWR: u32 = 2;
pub(crate) const EXCL: u32 = 0o200;
const DIRECTORY: u32 = 0o200000;
const RENAME_EXCHANGE: u32 = 2;
const FALLOC_KEEP_SIZE: u32 = 1;
const FALLOC_PUNCH_HOLE: u32 = 2;
const SEEK_DATA: u32 = 3;
const SEEK_HOLE: u32 = 4;

pub(crate) const MODE_BITS: u32 = 0o7777;

/// A file, directory or link of the host.
pub(crate) struct Node {
    pub(crate) volume: Arc<Volume>,
    pub(crate) id: NodeId,
    /// How many entries named it.
    lookups: AtomicU64,
    number: u64,
    kind: FileType,
    /// The same file, open at the daemon; from the first open file on.
    open: Mutex<Option<Arc<Handle>>>,
    mode: SeenMode,
    pub(crate) cache: Cache,
    locks: FileLocks,
    attachment: Attachment,
}

impl Node {
    /// Errors: `Io` if it is of no kind that there is, `OutOfMemory`.
    pub(crate) fn new(
        volume: &Arc<Volume>,
        id: NodeId,
        lookups: u64,
        attributes: &Attributes,
    ) -> Result<Arc<Self>> {
        let kind = FileType::from_mode(attributes.mode).ok_or(Error::Io)?;
        mach::mem::fallible::room_for_arc::<Self>()?;
        Ok(Arc::new(Self {
            volume: volume.clone(),
            id,
            lookups: AtomicU64::new(lookups),
            number: attributes.number,
            kind,
            open: Mutex::new(None),
            mode: SeenMode::default(),
            cache: Cache::default(),
            locks: FileLocks::default(),
            attachment: Attachment::default(),
        }))
    }

    /// One more entry named it.
    pub(crate) fn count(&self) {
        self.lookups.fetch_add(1, Ordering::Relaxed);
    }

    /// Whether these are attributes of this file.
    pub(crate) fn is(&self, attributes: &Attributes) -> bool {
        let same_kind = FileType::from_mode(attributes.mode) == Some(self.kind);
        same_kind && attributes.number == self.number
    }

    fn what(&self) -> What {
        match self.kind {
            FileType::Directory => What::Directory,
            _ => What::File,
        }
    }

    pub(crate) fn call(&self, request: Request<'_>) -> Result<Answer> {
        self.volume.call(self.id, request)
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
        let other = self.open.lock().replace(handle.clone());
        drop(other);
        Ok(handle)
    }

    pub(crate) fn read_metadata(&self) -> Result<Metadata> {
        let before = self.mode.changes();
        let found = self.volume.attributes(self.id)?;
        self.mode.note(before, found.mode);
        let (device, mode) = (self.volume.device, found.mode & MODE_BITS);
        let mut metadata = Metadata::new(device, found.number, self.kind, mode);
        metadata.links = found.links;
        metadata.uid = found.uid;
        metadata.gid = found.gid;
        metadata.node = u64::from(found.device);
        metadata.size = found.size;
        metadata.blocks = found.blocks;
        metadata.accessed = time_of(found.accessed);
        metadata.modified = time_of(found.modified);
        metadata.changed = time_of(found.changed);
        metadata.created = metadata.changed;
        Ok(metadata)
    }

    pub(crate) fn set(&self, set: SetAttributes) -> Result<()> {
        let result = self.call(Request::Setattr { set });
        if set.mode.is_some() {
            self.mode.forget();
        }
        result.map(drop)
    }

    /// Waits until the host has for good what was written.
    pub(crate) fn wait_until_durable(&self, data_only: bool) -> Result<()> {
        let (what, handle) = (self.what(), self.opened()?.number);
        self.call(Request::Fsync {
            what,
            handle,
            data_only,
        })
        .map(drop)
    }

    /// `inode` as a node of this folder.
    fn own<'a>(&self, inode: &'a InodeRef) -> Result<&'a Self> {
        let node: Option<&Self> = inode.as_any().downcast_ref();
        node.filter(|node| Arc::ptr_eq(&node.volume, &self.volume))
            .ok_or(Error::CrossDevice)
    }

    fn names(&self, offset: u64) -> Result<Vec<Name>> {
        let handle = self.opened()?;
        let request = Request::Read {
            what: What::Directory,
            handle: handle.number,
            offset,
            count: self.volume.io_bytes as u32,
        };
        match self.call(request)? {
            Answer::Names(names) => Ok(names),
            _ => Err(Error::Io),
        }
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        self.volume.forget(self.id, *self.lookups.get_mut());
    }
}

fn time_of(time: Time) -> Timestamp {
    timestamp(time.seconds, u64::from(time.nanos))
}

fn set_time(time: Timestamp) -> SetTime {
    SetTime::To(Time {
        seconds: time.seconds as u64,
        nanos: time.nanos,
    })
}

impl Inode for Node {
    fn kind(&self) -> FileType {
        self.kind
    }

    /// Opens the file at the daemon, which then says whether it can be.
    fn open(&self) -> Option<Result<FileRef>> {
        match self.kind {
            FileType::Regular => self.opened().err().map(Err),
            _ => None,
        }
    }

    fn may_set_ids(&self) -> bool {
        self.mode.may_set_ids()
    }

    fn change(&self, change: &Change) -> Result<()> {
        let set = SetAttributes {
            mode: change.mode.map(|mode| self.kind as u32 | mode & MODE_BITS),
            uid: change.uid,
            gid: change.gid,
            accessed: change.accessed.map(set_time),
            modified: change.modified.map(set_time),
            ..SetAttributes::default()
        };
        if set == SetAttributes::default() {
            return Ok(());
        }
        self.set(set)
    }

    fn lookup(&self, name: &[u8]) -> Result<InodeRef> {
        if self.kind != FileType::Directory {
            return Err(Error::NotDirectory);
        }
        match self.call(Request::Lookup { name })? {
            Answer::Entry(entry) => Ok(self.volume.node(&entry)?),
            _ => Err(Error::Io),
        }
    }

    fn create(&self, name: &[u8], new: &New<'_>) -> Result<InodeRef> {
        Ok(self.make(name, new)?)
    }

    fn link(&self, name: &[u8], target: &InodeRef) -> Result<()> {
        let old = self.own(target)?.id;
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

    fn rename(&self, name: &[u8], to: &InodeRef, to_name: &[u8], exchange: bool) -> Result<()> {
        let request = Request::Rename {
            name,
            to: self.own(to)?.id,
            new_name: to_name,
            flags: if exchange { RENAME_EXCHANGE } else { 0 },
        };
        self.call(request).map(drop)
    }

    fn list(&self, cursor: u64, emit: Emit<'_>) -> Result<()> {
        fs_host::list(cursor, emit, |cursor| self.names(cursor))
    }

    fn read_link(&self) -> Result<Vec<u8>> {
        if self.kind != FileType::Symlink {
            return Err(Error::Invalid);
        }
        match self.call(Request::Readlink)? {
            Answer::Data(target) => Ok(target),
            _ => Err(Error::Io),
        }
    }

    fn truncate(&self, size: u64) -> Result<()> {
        let open = self.open.lock().clone();
        let set = SetAttributes {
            size: Some(size),
            // Who opened it to write may, whatever its mode says by now.
            handle: open
                .as_ref()
                .filter(|open| open.is_writable)
                .map(|open| open.number),
            ..SetAttributes::default()
        };
        pagecache::resize(self, size, || self.set(set))
    }

    fn allocate(&self, range: Range<u64>, keep_size: bool, punch: bool) -> Result<()> {
        let handle = self.opened_to_write()?;
        let keep_size = if keep_size || punch {
            FALLOC_KEEP_SIZE
        } else {
            0
        };
        let punch_hole = if punch { FALLOC_PUNCH_HOLE } else { 0 };
        self.call(Request::Fallocate {
            handle: handle.number,
            offset: range.start,
            len: range.end.saturating_sub(range.start),
            mode: keep_size | punch_hole,
        })?;
        if punch {
            pagecache::zero(self, range);
        }
        Ok(())
    }

    fn sync(&self, data_only: bool) -> Result<()> {
        pagecache::write_back(self, 0..u64::MAX)?;
        self.wait_until_durable(data_only)
    }

    fn seek(&self, offset: u64, hole: bool) -> Result<u64> {
        pagecache::write_back(self, 0..u64::MAX)?;
        let request = Request::Lseek {
            handle: self.opened()?.number,
            offset,
            whence: if hole { SEEK_HOLE } else { SEEK_DATA },
        };
        match self.call(request)? {
            Answer::Offset(found) if found >= offset => Ok(found),
            _ => Err(Error::Io),
        }
    }

    fn locks(&self) -> Option<&FileLocks> {
        Some(&self.locks)
    }

    fn extended(&self) -> Option<&dyn Extended> {
        Some(self)
    }

    fn attachment(&self) -> Option<&Attachment> {
        Some(&self.attachment)
    }
}
