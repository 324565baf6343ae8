//! An inode as programs read, write and map it.

use alloc::sync::Arc;
use core::ops::Range;
use core::sync::atomic::{AtomicUsize, Ordering};

use ext4::{FLAG_APPEND, FLAG_IMMUTABLE};
use kernel_pagecache as pagecache;
use mm::io::{Sink, Source};
use mm::{FaultError, MemoryObject, Page, Sharing, Synced};
use sync::{Error, Result};
use vfs::file::{File, OpenFile, StatusFlags};
use vfs::{FileType, Inode, Metadata};

use crate::node::Node;

/// What O_SYNC has beyond O_DSYNC.
const SYNC_ALL: u32 = 0o400_0000;

impl Node {
    fn check_regular(&self) -> Result<()> {
        match self.kind() {
            FileType::Regular => Ok(()),
            FileType::Directory => Err(Error::IsDirectory),
            _ => Err(Error::Invalid),
        }
    }
}

impl Node {
    /// What the disk would say when the bytes come there, which is too late.
    fn check_write(&self, open: &OpenFile, offset: u64, from: &mut Source<'_>) -> Result<()> {
        let appends = open.flags().contains(StatusFlags::APPEND);
        let start = if appends { self.bytes() } else { offset };
        let is_fixed = self.flags & FLAG_IMMUTABLE != 0
            || self.flags & FLAG_APPEND != 0 && start < self.bytes()
            || !self.shared.is_writable.load(Ordering::Acquire);
        if is_fixed {
            return Err(Error::ReadOnly);
        }
        match self.shared.size_max.checked_sub(start) {
            None | Some(0) => Err(Error::FileTooLarge),
            Some(room) => {
                from.cut_to(
                    usize::try_from(room)
                        .unwrap_or(usize::MAX)
                        .min(from.remaining()),
                );
                Ok(())
            }
        }
    }
}

impl File for Node {
    fn read_at(&self, open: &OpenFile, offset: u64, to: &mut Sink<'_>) -> Result<usize> {
        self.check_regular()?;
        match open.flags().contains(StatusFlags::DIRECT) {
            true => self.read_direct(offset, to),
            false => pagecache::read_at(self, offset, to),
        }
    }

    fn write_at(&self, open: &OpenFile, offset: u64, from: &mut Source<'_>) -> Result<usize> {
        self.check_regular()?;
        self.check_write(open, offset, from)?;
        let flags = open.flags() & (StatusFlags::DIRECT | StatusFlags::APPEND);
        let direct = match flags == StatusFlags::DIRECT {
            true => self.write_direct(offset, from)?,
            false => None,
        };
        let count = match direct {
            Some(count) => count,
            None => pagecache::write_at(self, open, offset, from)?,
        };
        if count != 0 && open.flags().contains(StatusFlags::DSYNC) {
            Inode::sync(self, open.flags().bits() & SYNC_ALL == 0)?;
        }
        Ok(count)
    }

    fn is_seekable(&self) -> bool {
        true
    }

    fn metadata(&self) -> Result<Metadata> {
        self.read_metadata()
    }

    /// As where a file takes another's name (`Shared::bring_down_replacing`).
    fn close(&self, _open: &OpenFile) {
        if self.is_emptied.swap(false, Ordering::AcqRel) {
            // What memory is missing for stays listed, and who has the file open hears of failures.
            let _ = pagecache::write_back(self, 0..u64::MAX);
        }
    }

    fn failures_heard(&self) -> u32 {
        self.cache.failures_heard()
    }

    fn tell_failures(&self, heard: &mut u32) -> bool {
        self.cache.tell_failures(heard)
    }

    fn memory(self: Arc<Self>) -> Option<Arc<dyn MemoryObject>> {
        let is_regular = self.kind() == FileType::Regular;
        is_regular.then_some(self as Arc<dyn MemoryObject>)
    }

    fn as_any(&self) -> &dyn core::any::Any {
        self
    }
}

impl MemoryObject for Node {
    fn shown(&self) -> Option<&AtomicUsize> {
        Some(self.cache.shown())
    }

    fn page(&self, index: u64, _: Sharing) -> core::result::Result<Page, FaultError> {
        pagecache::page(self, index)
    }

    fn ready_page(&self, index: u64, _: Sharing) -> Option<Page> {
        pagecache::ready_page(&self.cache, index)
    }

    fn ready_pages(&self, pages: Range<u64>, _: Sharing, give: &mut dyn FnMut(u64, &Page)) {
        pagecache::ready_pages(&self.cache, pages, give);
    }

    fn size(&self) -> u64 {
        self.bytes()
    }

    fn mark_dirty(&self, index: u64) -> core::result::Result<(), FaultError> {
        pagecache::mark_dirty(self, index)
    }

    fn mark_stored(&self, index: u64) {
        pagecache::mark_stored(self, index);
    }

    fn make_room(&self, index: u64) -> core::result::Result<(), FaultError> {
        pagecache::make_room(self, index)
    }

    fn sync(&self, bytes: Range<u64>, how: Synced) -> Result<()> {
        pagecache::write_back(self, bytes)?;
        match how {
            Synced::Written => Ok(()),
            Synced::Durable => self.wait_until_durable(ext4::Sync::Data),
        }
    }
}
