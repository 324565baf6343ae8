//! An inode of the host as programs read, write and map it.

use alloc::sync::Arc;
use core::ops::Range;
use core::sync::atomic::AtomicUsize;

use kernel_pagecache::{self as pagecache, Backing, Cache, Keeps};
use mm::io::{Sink, Source};
use mm::{FaultError, MemoryObject, Page, Sharing, Synced};
use sync::{Error, Result};
use vfs::file::{File, OpenFile};
use vfs::{FileType, Inode, Metadata};

use crate::bytes;
use crate::node::Node;
use crate::remote::Remote;

/// Others change the host's files, so only what programs have mapped is kept, unless nobody changes the folder.
impl<R: Remote> Backing for Node<R> {
    fn cache(&self) -> &Cache {
        &self.cache
    }

    fn keeps(&self) -> Keeps {
        match self.remote.is_immutable() {
            true => Keeps::All,
            false => Keeps::Mapped,
        }
    }

    fn size(&self) -> Result<u64> {
        match self.remote.is_immutable() {
            true => Ok(self.first_size),
            false => Ok(self.remote.metadata()?.size),
        }
    }

    fn piece_bytes(&self) -> usize {
        self.remote.io_bytes()
    }

    fn fill(&self, first: u64, pages: &[Page]) -> Result<bool> {
        bytes::fill(&self.remote, first, pages).map(|()| true)
    }

    fn fetch(&self, offset: u64, into: &mut [u8]) -> Result<usize> {
        bytes::fetch(&self.remote, offset, into)
    }

    fn store(&self, offset: u64, data: &[u8]) -> Result<usize> {
        bytes::store(&self.remote, offset, data)
    }

    fn bring(&self, first: u64, pages: &[Page], size: u64) -> Result<u64> {
        bytes::bring(&self.remote, first, pages, size)
    }
}

impl<R: Remote> File for Node<R> {
    fn read_at(&self, _open: &OpenFile, offset: u64, to: &mut Sink<'_>) -> Result<usize> {
        match Inode::kind(self) {
            FileType::Directory => Err(Error::IsDirectory),
            _ => pagecache::read_at(self, offset, to),
        }
    }

    fn write_at(&self, open: &OpenFile, offset: u64, from: &mut Source<'_>) -> Result<usize> {
        self.check_mutable()?;
        pagecache::write_at(self, open, offset, from)
    }

    fn is_seekable(&self) -> bool {
        true
    }

    fn metadata(&self) -> Result<Metadata> {
        self.read_metadata()
    }

    fn close(&self, _open: &OpenFile) {
        pagecache::close(self);
    }

    fn failures_heard(&self) -> u32 {
        self.cache.failures_heard()
    }

    fn tell_failures(&self, heard: &mut u32) -> bool {
        self.cache.tell_failures(heard)
    }

    fn memory(self: Arc<Self>) -> Option<Arc<dyn MemoryObject>> {
        let is_regular = Inode::kind(&*self) == FileType::Regular;
        is_regular.then_some(self as Arc<dyn MemoryObject>)
    }

    fn as_any(&self) -> &dyn core::any::Any {
        self
    }
}

impl<R: Remote> MemoryObject for Node<R> {
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
        Backing::size(self).unwrap_or(0)
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
            Synced::Durable => self.remote.make_durable(true),
        }
    }
}
