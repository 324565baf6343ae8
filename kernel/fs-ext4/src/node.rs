//! An inode as the tree of names knows it.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::ops::Range;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use ext4::{Allocate, Rename, Seek, Time};
use kernel_pagecache::{Backing, Cache};
use mach::mem::fallible::TryGrow;
use mach::sync::Spin;
use sync::{Error, Result};
use vfs::inode::{DirEntry, Emit};
use vfs::locks::FileLocks;
use vfs::set_ids::SET_IDS;
use vfs::{Attachment, Change, FileType, Inode, InodeRef, Metadata, New, Timestamp};
use vfs::{device_number, device_parts};

use crate::volume::{Shared, now, time_of};

const MODE_BITS: u16 = 0o7777;
/// Sectors of a page, in which stat(2) counts room.
const PAGE_SECTORS: u64 = base::PAGE_BYTES as u64 / 512;
/// Names of a listing that are taken under the lock at once.
const LISTED_AT_ONCE: usize = 64;

/// A file, a directory, a link or a node.
pub(super) struct Node {
    pub(super) shared: Arc<Shared>,
    pub(super) number: u32,
    kind: FileType,
    /// It has no names, and goes when the node goes.
    is_unlinked: AtomicBool,
    /// The mode had no set-user-ID or set-group-ID bits when it was last seen.
    is_ordinary: AtomicBool,
    pub(super) cache: Cache,
    /// Bytes of a regular file.
    pub(super) size: AtomicU64,
    /// It was emptied: what is written then replaces what was there.
    pub(super) is_emptied: AtomicBool,
    /// Its flags that say how it may be written.
    pub(super) flags: u32,
    /// When its bytes changed, as long as the disk does not know. The disk is told, and an older time replaced by what a
    /// program sets, with the volume's lock held.
    pub(super) modified: Spin<Option<Time>>,
    /// The volume has it among those to be brought down.
    pub(super) is_listed: AtomicBool,
    /// Since when, in nanoseconds.
    pub(super) listed_ns: AtomicU64,
    locks: FileLocks,
    attachment: Attachment,
}

fn kind_of(inode: &ext4::Inode) -> Result<FileType> {
    FileType::from_mode(u32::from(inode.mode)).ok_or(Error::Io)
}

/// `file_type` of an entry on the disk.
fn listed_kind(kind: u8) -> FileType {
    match kind {
        2 => FileType::Directory,
        3 => FileType::CharDevice,
        4 => FileType::BlockDevice,
        5 => FileType::Fifo,
        6 => FileType::Socket,
        7 => FileType::Symlink,
        _ => FileType::Regular,
    }
}

fn disk_kind(kind: FileType) -> Result<ext4::FileType> {
    ext4::FileType::from_mode(kind as u32 as u16).ok_or(Error::Invalid)
}

fn timestamp(time: Time) -> Timestamp {
    Timestamp {
        seconds: time.seconds,
        nanos: time.nanos,
    }
}

/// A name of a listing.
struct Name {
    name: Vec<u8>,
    number: u32,
    kind: u8,
    next: u64,
}

impl Node {
    pub(super) fn new(shared: &Arc<Shared>, inode: &ext4::Inode) -> Result<Arc<Self>> {
        Ok(Arc::new(Self {
            shared: shared.clone(),
            number: inode.number,
            kind: kind_of(inode)?,
            is_unlinked: AtomicBool::new(inode.links == 0),
            is_ordinary: AtomicBool::new(false),
            cache: Cache::default(),
            size: AtomicU64::new(inode.size),
            is_emptied: AtomicBool::new(false),
            flags: inode.flags,
            modified: Spin::new(None),
            is_listed: AtomicBool::new(false),
            listed_ns: AtomicU64::new(0),
            locks: FileLocks::default(),
            attachment: Attachment::default(),
        }))
    }

    /// Whether it has no name any more.
    pub(super) fn is_unlinked(&self) -> bool {
        self.is_unlinked.load(Ordering::Acquire)
    }

    /// It has lost its last name. The volume's lock is held.
    pub(super) fn set_unlinked(&self) {
        self.is_unlinked.store(true, Ordering::Release);
    }

    pub(super) fn inode(&self) -> Result<ext4::Inode> {
        self.shared.beside(|volume| volume.inode(self.number))
    }

    pub(super) fn read_metadata(&self) -> Result<Metadata> {
        let (found, known) = self.shared.beside(|volume| {
            let found = volume.inode(self.number)?;
            Ok((found, *self.modified.lock()))
        })?;
        let mode = u32::from(found.mode & MODE_BITS);
        self.is_ordinary
            .store(mode & SET_IDS == 0, Ordering::Relaxed);
        let (device, number) = (self.shared.device, u64::from(self.number));
        let mut metadata = Metadata::new(device, number, self.kind, mode);
        metadata.links = u32::from(found.links);
        metadata.uid = found.uid;
        metadata.gid = found.gid;
        metadata.size = match self.kind {
            FileType::Regular => self.bytes(),
            _ => found.size,
        };
        metadata.blocks = found.sectors + self.cache.promised() * PAGE_SECTORS;
        metadata.accessed = timestamp(found.accessed);
        metadata.modified = timestamp(found.modified);
        metadata.changed = timestamp(found.changed);
        metadata.created = timestamp(found.created);
        if let Some(time) = known {
            metadata.modified = timestamp(time);
            metadata.changed = metadata.changed.max(timestamp(time));
        }
        if matches!(self.kind, FileType::CharDevice | FileType::BlockDevice) {
            let (major, minor) = found.device();
            metadata.node = device_number(major, minor);
        }
        Ok(metadata)
    }

    /// What was brought down stays, whatever happens.
    pub(super) fn wait_until_durable(&self, what: ext4::Sync) -> Result<()> {
        self.shared
            .sync(|volume| Ok(volume.sync_point(self.number, what)))
    }

    /// `inode` as a node of this volume.
    fn own<'a>(&self, inode: &'a InodeRef) -> Result<&'a Self> {
        let node: Option<&Self> = inode.as_any().downcast_ref();
        node.filter(|node| Arc::ptr_eq(&node.shared, &self.shared))
            .ok_or(Error::CrossDevice)
    }

    fn some_names(&self, cursor: u64) -> Result<Vec<Name>> {
        let mut names = Vec::new();
        names.make_room(LISTED_AT_ONCE)?;
        self.shared.with(|volume| {
            volume.list(self.number, cursor, &mut |listed| {
                if names.len() == LISTED_AT_ONCE {
                    return false;
                }
                names.push(Name {
                    name: listed.name.to_vec(),
                    number: listed.inode,
                    kind: listed.kind,
                    next: listed.next,
                });
                true
            })
        })?;
        Ok(names)
    }
}

fn new_of<'a>(new: &New<'a>) -> Result<ext4::New<'a>> {
    Ok(ext4::New {
        kind: disk_kind(new.kind)?,
        mode: new.mode as u16 & MODE_BITS,
        uid: new.uid,
        gid: new.gid,
        device: device_parts(new.device),
        target: new.target,
    })
}

impl Drop for Node {
    fn drop(&mut self) {
        Backing::release(self, self.cache.discard_all());
        if *self.is_unlinked.get_mut() {
            self.shared.forget(self.number);
        }
    }
}

impl Inode for Node {
    fn kind(&self) -> FileType {
        self.kind
    }

    fn may_set_ids(&self) -> bool {
        !self.is_ordinary.load(Ordering::Relaxed)
    }

    fn change(&self, change: &Change) -> Result<()> {
        let change = ext4::Change {
            mode: change.mode.map(|mode| mode as u16 & MODE_BITS),
            uid: change.uid,
            gid: change.gid,
            accessed: change.accessed.map(time_of),
            modified: change.modified.map(time_of),
        };
        self.is_ordinary.store(false, Ordering::Relaxed);
        self.shared.with(|volume| {
            volume.change(self.number, &change, now())?;
            if change.modified.is_some() {
                *self.modified.lock() = None;
            }
            Ok(())
        })
    }

    fn lookup(&self, name: &[u8]) -> Result<InodeRef> {
        let number = self
            .shared
            .beside(|volume| volume.lookup(self.number, name))?;
        Ok(self.shared.node(number)?)
    }

    fn create(&self, name: &[u8], new: &New<'_>) -> Result<InodeRef> {
        let new = new_of(new)?;
        let number = self
            .shared
            .with(|volume| volume.create(self.number, name, &new, now()))?;
        Ok(self.shared.node(number)?)
    }

    fn create_nameless(&self, new: &New<'_>) -> Result<InodeRef> {
        let new = new_of(new)?;
        let number = self
            .shared
            .with(|volume| volume.create_nameless(self.number, &new, now()))?;
        Ok(self.shared.nameless_node(number)?)
    }

    fn link(&self, name: &[u8], target: &InodeRef) -> Result<()> {
        let target = self.own(target)?;
        let had_none = self.shared.with(|volume| {
            volume.link(self.number, name, target.number, now())?;
            Ok(target.is_unlinked.swap(false, Ordering::AcqRel))
        })?;
        // Nobody had to bring down what it had without a name.
        if had_none {
            self.shared.list(target);
        }
        Ok(())
    }

    fn unlink(&self, name: &[u8]) -> Result<()> {
        self.shared
            .take_name(|volume| volume.unlink(self.number, name, now()).map(Some))
    }

    fn rmdir(&self, name: &[u8]) -> Result<()> {
        self.shared
            .take_name(|volume| volume.rmdir(self.number, name, now()).map(Some))
    }

    fn rename(&self, name: &[u8], to: &InodeRef, to_name: &[u8], exchange: bool) -> Result<()> {
        let how = match exchange {
            true => Rename::Exchange,
            false => Rename::Replace,
        };
        let (from, to) = ((self.number, name), (self.own(to)?.number, to_name));
        if !exchange {
            self.shared.bring_down_replacing(from, to)?;
        }
        self.shared
            .take_name(|volume| volume.rename(from, to, how, now()))
    }

    fn list(&self, cursor: u64, emit: Emit<'_>) -> Result<()> {
        let mut cursor = cursor;
        loop {
            let names = self.some_names(cursor)?;
            let Some(last) = names.last() else {
                return Ok(());
            };
            cursor = last.next;
            for entry in &names {
                let entry = DirEntry {
                    name: &entry.name,
                    number: u64::from(entry.number),
                    kind: listed_kind(entry.kind),
                    next: entry.next,
                };
                if !emit(entry) {
                    return Ok(());
                }
            }
        }
    }

    fn read_link(&self) -> Result<Vec<u8>> {
        self.shared.beside(|volume| volume.read_link(self.number))
    }

    fn truncate(&self, size: u64) -> Result<()> {
        self.resize(size)
    }

    fn allocate(&self, range: Range<u64>, keep_size: bool, punch: bool) -> Result<()> {
        let how = match (punch, keep_size) {
            (true, _) => Allocate::PunchHole,
            (false, true) => Allocate::KeepSize,
            (false, false) => Allocate::Extend,
        };
        self.reserve(range, how)
    }

    fn sync(&self, data_only: bool) -> Result<()> {
        self.bring_down()?;
        self.wait_until_durable(match data_only {
            true => ext4::Sync::Data,
            false => ext4::Sync::All,
        })
    }

    fn seek(&self, offset: u64, hole: bool) -> Result<u64> {
        self.bring_down()?;
        let what = if hole { Seek::Hole } else { Seek::Data };
        self.shared
            .beside(|volume| volume.seek(self.number, offset, what))
    }

    fn locks(&self) -> Option<&FileLocks> {
        Some(&self.locks)
    }

    fn attachment(&self) -> Option<&Attachment> {
        Some(&self.attachment)
    }
}
