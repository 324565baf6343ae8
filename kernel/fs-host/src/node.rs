//! An inode of the host as the kernel has it: its pages and locks, and the protocol's side for everything else.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::ops::Range;

use kernel_pagecache::{self as pagecache, Cache};
use mach::mem::fallible;
use sync::{Error, Result};
use vfs::extended::Extended;
use vfs::file::FileRef;
use vfs::inode::Emit;
use vfs::locks::FileLocks;
use vfs::{Attachment, Change, FileType, Inode, InodeRef, Metadata, New};

use crate::list::list;
use crate::remote::Remote;
use crate::seen_mode::SeenMode;

/// A file, directory or link of the host.
pub struct Node<R: Remote> {
    /// What the protocol says of it.
    pub remote: R,
    /// Bytes when it was looked up.
    pub(crate) first_size: u64,
    mode: SeenMode,
    pub(crate) cache: Cache,
    locks: FileLocks,
    attachment: Attachment,
}

impl<R: Remote> Node<R> {
    /// The node of an inode that has so many bytes now.
    ///
    /// Errors: `OutOfMemory`.
    pub fn new(remote: R, first_size: u64) -> Result<Arc<Self>> {
        Ok(fallible::arc(Self {
            remote,
            first_size,
            mode: SeenMode::default(),
            cache: Cache::default(),
            locks: FileLocks::default(),
            attachment: Attachment::default(),
        })?)
    }

    pub(crate) fn read_metadata(&self) -> Result<Metadata> {
        let before = self.mode.changes();
        let mut found = self.remote.metadata()?;
        self.mode.note(before, found.mode);
        // Which it is does not change, whatever has its path by now.
        found.kind = Inode::kind(self);
        Ok(found)
    }

    pub(crate) fn check_mutable(&self) -> Result<()> {
        match self.remote.is_immutable() {
            true => Err(Error::ReadOnly),
            false => Ok(()),
        }
    }

    /// `inode` as one of this folder.
    fn own<'a>(&self, inode: &'a InodeRef) -> Result<&'a R> {
        let node: Option<&Self> = inode.as_any().downcast_ref();
        let device = self.remote.identity().device;
        let own = node.filter(|node| node.remote.identity().device == device);
        Ok(&own.ok_or(Error::CrossDevice)?.remote)
    }
}

impl<R: Remote> Inode for Node<R> {
    fn kind(&self) -> FileType {
        self.remote.identity().kind
    }

    /// Opens the file on the host, which then says whether it can be.
    fn open(&self) -> Option<Result<FileRef>> {
        match Inode::kind(self) {
            FileType::Regular => self.remote.open().err().map(Err),
            _ => None,
        }
    }

    fn may_set_ids(&self) -> bool {
        self.mode.may_set_ids()
    }

    fn change(&self, change: &Change) -> Result<()> {
        self.check_mutable()?;
        let result = self.remote.change(change);
        if change.mode.is_some() {
            self.mode.forget();
        }
        result
    }

    fn lookup(&self, name: &[u8]) -> Result<InodeRef> {
        match Inode::kind(self) {
            FileType::Directory => Ok(self.remote.lookup(name)?),
            _ => Err(Error::NotDirectory),
        }
    }

    fn create(&self, name: &[u8], new: &New<'_>) -> Result<InodeRef> {
        self.check_mutable()?;
        let node = self.remote.create(name, new)?;
        // Others may have seen it before it was its owner's, who alone gets set-id bits.
        node.mode.forget();
        Ok(node)
    }

    fn link(&self, name: &[u8], target: &InodeRef) -> Result<()> {
        self.check_mutable()?;
        self.remote.link(name, self.own(target)?)
    }

    fn unlink(&self, name: &[u8]) -> Result<()> {
        self.check_mutable()?;
        self.remote.unlink(name)
    }

    fn rmdir(&self, name: &[u8]) -> Result<()> {
        self.check_mutable()?;
        self.remote.rmdir(name)
    }

    fn rename(&self, name: &[u8], to: &InodeRef, to_name: &[u8], exchange: bool) -> Result<()> {
        self.check_mutable()?;
        self.remote.rename(name, self.own(to)?, to_name, exchange)
    }

    fn list(&self, cursor: u64, emit: Emit<'_>) -> Result<()> {
        list(cursor, emit, |cursor| self.remote.names(cursor))
    }

    fn read_link(&self) -> Result<Vec<u8>> {
        match Inode::kind(self) {
            FileType::Symlink => self.remote.read_link(),
            _ => Err(Error::Invalid),
        }
    }

    fn truncate(&self, size: u64) -> Result<()> {
        self.check_mutable()?;
        pagecache::resize(self, size, || self.remote.resize(size))
    }

    fn allocate(&self, range: Range<u64>, keep_size: bool, punch: bool) -> Result<()> {
        let holes = self.remote.holes().ok_or(Error::Unsupported)?;
        holes.allocate(range.clone(), keep_size, punch)?;
        if punch {
            pagecache::zero(self, range);
        }
        Ok(())
    }

    fn sync(&self, data_only: bool) -> Result<()> {
        pagecache::write_back(self, 0..u64::MAX)?;
        self.remote.make_durable(data_only)
    }

    fn seek(&self, offset: u64, hole: bool) -> Result<u64> {
        let Some(holes) = self.remote.holes() else {
            return self.read_metadata()?.seek(offset, hole);
        };
        pagecache::write_back(self, 0..u64::MAX)?;
        holes.seek(offset, hole)
    }

    fn locks(&self) -> Option<&FileLocks> {
        Some(&self.locks)
    }

    fn extended(&self) -> Option<&dyn Extended> {
        self.remote.extended()
    }

    fn attachment(&self) -> Option<&Attachment> {
        Some(&self.attachment)
    }
}
