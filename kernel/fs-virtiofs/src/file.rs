//! The bytes of a file of the host, below its pages (`kernel_pagecache`).

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::ops::Range;
use core::sync::atomic::AtomicUsize;

use fs_host::Bytes;
use fuse::{Request, What};
use kernel_pagecache::{self as pagecache, Backing, Cache, Keeps};
use mm::io::{Sink, Source};
use mm::{FaultError, MemoryObject, Page, Sharing, Synced};
use sync::{Error, Result};
use vfs::file::{File, OpenFile};
use vfs::{FileType, Metadata};

use crate::answer::Answer;
use crate::node::Node;

impl Bytes for Node {
    fn io_bytes(&self) -> usize {
        self.volume.io_bytes
    }

    fn ask(&self, offset: u64, count: usize) -> Result<Vec<u8>> {
        let handle = self.opened()?;
        let request = Request::Read {
            what: What::File,
            handle: handle.number,
            offset,
            count: count as u32,
        };
        match self.call(request)? {
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

/// Others change the host's files, so only what programs have mapped is kept.
impl Backing for Node {
    fn cache(&self) -> &Cache {
        &self.cache
    }

    fn keeps(&self) -> Keeps {
        Keeps::Mapped
    }

    fn size(&self) -> Result<u64> {
        Ok(self.volume.attributes(self.id)?.size)
    }

    fn piece_bytes(&self) -> usize {
        self.volume.io_bytes
    }

    fn fill(&self, first: u64, pages: &[Page]) -> Result<bool> {
        fs_host::fill(self, first, pages).map(|()| true)
    }

    fn fetch(&self, offset: u64, into: &mut [u8]) -> Result<usize> {
        fs_host::fetch(self, offset, into)
    }

    fn store(&self, offset: u64, data: &[u8]) -> Result<usize> {
        fs_host::store(self, offset, data)
    }

    fn bring(&self, first: u64, pages: &[Page], size: u64) -> Result<u64> {
        fs_host::bring(self, first, pages, size)
    }
}

impl File for Node {
    fn read_at(&self, _open: &OpenFile, offset: u64, to: &mut Sink<'_>) -> Result<usize> {
        pagecache::read_at(self, offset, to)
    }

    fn write_at(&self, open: &OpenFile, offset: u64, from: &mut Source<'_>) -> Result<usize> {
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
        let is_regular = vfs::Inode::kind(&*self) == FileType::Regular;
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
        Backing::size(self).unwrap_or(0)
    }

    fn mark_dirty(&self, index: u64) -> core::result::Result<(), FaultError> {
        pagecache::stored(self, index)
    }

    fn sync(&self, bytes: Range<u64>, how: Synced) -> Result<()> {
        pagecache::write_back(self, bytes)?;
        match how {
            Synced::Written => Ok(()),
            Synced::Durable => self.wait_until_durable(true),
        }
    }
}
