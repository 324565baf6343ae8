//! An inode of the host: its names and attributes are asked for each time.

use alloc::sync::Arc;
use alloc::vec::Vec;

use fs_host::{Name, SeenMode, timestamp};
use kernel_pagecache::{self as pagecache, Cache};
use ninep::{Attributes, Fid, Qid, Request, SetAttributes, SetTime, Time};
use sync::{Error, Mutex, Result};

use super::answer::Answer;
use super::volume::{Handle, Volume};
use vfs::file::FileRef;
use vfs::inode::Emit;
use vfs::locks::FileLocks;
use vfs::{Attachment, Change, FileType, Inode, InodeRef, Metadata, New, Timestamp, device_parts};

/// Open flags and unlink flags, in Linux's numbers as the protocol wants them.
const RDONLY: u32 = 0;
const RDWR: u32 = 2;
const EXCL: u32 = 0o200;
const DIRECTORY: u32 = 0o200000;
const REMOVE_DIRECTORY: u32 = 0x200;

const MODE_BITS: u32 = 0o7777;
const SET_ID_BITS: u32 = 0o6000;

/// A file, directory or link of the host.
pub(super) struct Node {
    pub(super) volume: Arc<Volume>,
    handle: Handle,
    qid: Qid,
    kind: FileType,
    /// Bytes when it was looked up.
    pub(super) first_size: u64,
    /// The same file, open on the host; from the first open file on.
    open: Mutex<Option<Arc<Handle>>>,
    mode: SeenMode,
    pub(super) cache: Cache,
    locks: FileLocks,
    attachment: Attachment,
}

impl Node {
    pub(super) fn new(
        volume: &Arc<Volume>,
        handle: Handle,
        attributes: &Attributes,
    ) -> Result<Arc<Self>> {
        let kind = FileType::from_mode(attributes.mode).ok_or(Error::Io)?;
        Ok(Arc::new(Self {
            volume: volume.clone(),
            handle,
            qid: attributes.qid,
            kind,
            first_size: attributes.size,
            open: Mutex::new(None),
            mode: SeenMode::default(),
            cache: Cache::default(),
            locks: FileLocks::default(),
            attachment: Attachment::default(),
        }))
    }

    /// Whether these are attributes of this file.
    pub(super) fn is(&self, attributes: &Attributes) -> bool {
        let same_kind = FileType::from_mode(attributes.mode) == Some(self.kind);
        same_kind && attributes.qid.path == self.qid.path
    }

    /// Whether its fid names this file, and no other that took its path when it was removed.
    pub(super) fn is_still_there(&self) -> bool {
        self.attributes().is_ok_and(|found| self.is(&found))
    }

    /// Whether its path is another file's by now, which a server that goes by paths (QEMU before 10.1) would change.
    fn is_replaced(&self) -> bool {
        let found = self.volume.attributes(self.fid());
        found.is_ok_and(|found| !self.is(&found))
    }

    pub(super) fn fid(&self) -> Fid {
        self.handle.fid()
    }

    /// The open file on the host; opened for writing too, if that is allowed.
    pub(super) fn opened(&self) -> Result<Arc<Handle>> {
        let mut open = self.open.lock();
        if let Some(handle) = &*open {
            return Ok(handle.clone());
        }
        let handle = Arc::new(self.volume.duplicate(&self.handle)?);
        let lopen = |flags| {
            self.volume.call(&Request::Lopen {
                fid: handle.fid(),
                flags,
            })
        };
        if self.kind == FileType::Directory {
            lopen(RDONLY | DIRECTORY)?;
        } else if self.volume.is_immutable {
            lopen(RDONLY)?;
        } else if let Err(error) = lopen(RDWR) {
            match error {
                Error::AccessDenied | Error::ReadOnly | Error::TextBusy => lopen(RDONLY)?,
                error => return Err(error),
            };
        }
        *open = Some(handle.clone());
        Ok(handle)
    }

    /// What the host says of the file, even if it has no name any more.
    pub(super) fn attributes(&self) -> Result<Attributes> {
        let open = self.open.lock().clone();
        let fid = open.as_ref().map_or(self.fid(), |handle| handle.fid());
        self.volume.attributes(fid)
    }

    pub(super) fn read_metadata(&self) -> Result<Metadata> {
        let before = self.mode.changes();
        let found = self.attributes()?;
        self.mode.note(before, found.mode);
        let device = self.volume.device;
        let mut metadata = Metadata::new(device, found.qid.path, self.kind, found.mode & MODE_BITS);
        metadata.links = u32::try_from(found.links).unwrap_or(u32::MAX);
        metadata.uid = found.uid;
        metadata.gid = found.gid;
        metadata.node = found.device;
        metadata.size = found.size;
        metadata.blocks = found.blocks;
        metadata.accessed = time_of(found.accessed);
        metadata.modified = time_of(found.modified);
        metadata.changed = time_of(found.changed);
        metadata.created = metadata.changed;
        Ok(metadata)
    }

    pub(super) fn set(&self, set: SetAttributes) -> Result<()> {
        self.volume.check_mutable()?;
        let open = self.open.lock().clone();
        // That of an open file reaches it when it has no name any more, where the server can.
        let fid = open.as_ref().map_or(self.fid(), |handle| handle.fid());
        if open.is_some() && self.is_replaced() {
            return Err(Error::NotFound);
        }
        let result = self.volume.call(&Request::Setattr { fid, set });
        if set.mode.is_some() {
            self.mode.forget();
        }
        result.map(drop)
    }

    /// `inode` as a node of this volume.
    fn own<'a>(&self, inode: &'a InodeRef) -> Result<&'a Self> {
        let node: Option<&Self> = inode.as_any().downcast_ref();
        node.filter(|node| Arc::ptr_eq(&node.volume, &self.volume))
            .ok_or(Error::CrossDevice)
    }

    /// Makes a file, which is open then.
    fn create_file(&self, name: &[u8], new: &New<'_>) -> Result<InodeRef> {
        // The fid of the directory becomes that of the open file.
        let handle = self.volume.duplicate(&self.handle)?;
        let (fid, mode, gid) = (handle.fid(), first_mode(new), new.gid);
        let answer = self.volume.call(&Request::Lcreate {
            fid,
            name,
            flags: RDWR | EXCL,
            mode,
            gid,
        })?;
        let node = self.volume.lookup(&self.handle, name)?;
        // Somebody at the host may have put another one there.
        if matches!(answer, Answer::Opened(qid) if qid.path == node.qid.path) {
            node.open.lock().get_or_insert_with(|| Arc::new(handle));
        }
        node.give_to(new)?;
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
            mode: Some(self.full_mode(new.mode)),
            ..SetAttributes::default()
        })
    }

    /// With the bits of the file's kind: QEMU's `mapped-xattr` takes a mode as it comes.
    fn full_mode(&self, mode: u32) -> u32 {
        self.kind as u32 | mode & MODE_BITS
    }

    /// What has come to the host stays, whatever happens.
    pub(super) fn wait_until_durable(&self, data_only: bool) -> Result<()> {
        let fid = self.opened()?.fid();
        self.volume
            .call(&Request::Fsync { fid, data_only })
            .map(drop)
    }

    fn names(&self, offset: u64) -> Result<Vec<Name>> {
        let fid = self.opened()?.fid();
        let count = self.volume.io_bytes() as u32;
        match self.volume.call(&Request::Readdir { fid, offset, count })? {
            Answer::Names(names) => Ok(names),
            _ => Err(Error::Io),
        }
    }
}

/// The mode with which a file is made, before it is its owner's.
fn first_mode(new: &New<'_>) -> u32 {
    match new.kind {
        FileType::Directory => new.mode & MODE_BITS,
        _ => new.mode & MODE_BITS & !SET_ID_BITS,
    }
}

fn time_of(time: Time) -> Timestamp {
    timestamp(time.seconds, time.nanos)
}

fn set_time(time: Timestamp) -> SetTime {
    SetTime::To(Time {
        seconds: time.seconds as u64,
        nanos: u64::from(time.nanos),
    })
}

impl Inode for Node {
    fn kind(&self) -> FileType {
        self.kind
    }

    /// Opens the file on the host, so that it survives its removal.
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
        self.set(SetAttributes {
            mode: change.mode.map(|mode| self.full_mode(mode)),
            uid: change.uid,
            gid: change.gid,
            size: None,
            accessed: change.accessed.map(set_time),
            modified: change.modified.map(set_time),
        })
    }

    fn lookup(&self, name: &[u8]) -> Result<InodeRef> {
        if self.kind != FileType::Directory {
            return Err(Error::NotDirectory);
        }
        Ok(self.volume.lookup(&self.handle, name)?)
    }

    /// The server makes it: the volume is attached as user 0, so it is root's at first. Only its
    /// owner gets set-id bits ([`Node::give_to`]).
    fn create(&self, name: &[u8], new: &New<'_>) -> Result<InodeRef> {
        let (dir, gid, mode) = (self.fid(), new.gid, first_mode(new));
        let (major, minor) = device_parts(new.device);
        let node_mode = new.kind as u32 | mode;
        let request = match new.kind {
            FileType::Regular => return self.create_file(name, new),
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
        let node = self.volume.lookup(&self.handle, name)?;
        node.give_to(new)?;
        Ok(node)
    }

    fn link(&self, name: &[u8], target: &InodeRef) -> Result<()> {
        let fid = self.own(target)?.fid();
        self.volume
            .call(&Request::Link {
                dir: self.fid(),
                fid,
                name,
            })
            .map(drop)
    }

    fn unlink(&self, name: &[u8]) -> Result<()> {
        self.volume
            .call(&Request::Unlinkat {
                dir: self.fid(),
                name,
                flags: 0,
            })
            .map(drop)
    }

    fn rmdir(&self, name: &[u8]) -> Result<()> {
        let flags = REMOVE_DIRECTORY;
        self.volume
            .call(&Request::Unlinkat {
                dir: self.fid(),
                name,
                flags,
            })
            .map(drop)
    }

    fn rename(&self, name: &[u8], to: &InodeRef, to_name: &[u8], exchange: bool) -> Result<()> {
        if exchange {
            return Err(Error::Invalid);
        }
        let to = self.own(to)?.fid();
        let request = Request::Renameat {
            from: self.fid(),
            name,
            to,
            new_name: to_name,
        };
        self.volume.call(&request).map(drop)
    }

    fn list(&self, cursor: u64, emit: Emit<'_>) -> Result<()> {
        fs_host::list(cursor, emit, |cursor| self.names(cursor))
    }

    fn read_link(&self) -> Result<Vec<u8>> {
        match self.volume.call(&Request::Readlink { fid: self.fid() })? {
            Answer::Data(target) => Ok(target),
            _ => Err(Error::Io),
        }
    }

    fn truncate(&self, size: u64) -> Result<()> {
        let set = SetAttributes {
            size: Some(size),
            ..SetAttributes::default()
        };
        pagecache::resize(self, size, || self.set(set))
    }

    fn sync(&self, data_only: bool) -> Result<()> {
        pagecache::write_back(self, 0..u64::MAX)?;
        self.wait_until_durable(data_only)
    }

    fn locks(&self) -> Option<&FileLocks> {
        Some(&self.locks)
    }

    fn attachment(&self) -> Option<&Attachment> {
        Some(&self.attachment)
    }
}
