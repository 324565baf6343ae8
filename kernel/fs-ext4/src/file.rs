//! An inode as programs read, write and map it.

use alloc::sync::Arc;
use core::ops::Range;
use core::sync::atomic::AtomicUsize;

use kernel_pagecache as pagecache;
use mm::io::{Sink, Source};
use mm::{FaultError, MemoryObject, Page, Sharing};
use sync::{Error, Result};
use vfs::file::{File, OpenFile};
use vfs::{FileType, Inode, Metadata};

use crate::node::Node;

impl Node {
    fn check_regular(&self) -> Result<()> {
        match self.kind() {
            FileType::Regular => Ok(()),
            FileType::Directory => Err(Error::IsDirectory),
            _ => Err(Error::Invalid),
        }
    }
}

impl File for Node {
    fn read_at(&self, _open: &OpenFile, offset: u64, to: &mut Sink<'_>) -> Result<usize> {
        self.check_regular()?;
        pagecache::read_at(self, offset, to)
    }

    fn write_at(&self, open: &OpenFile, offset: u64, from: &mut Source<'_>) -> Result<usize> {
        self.check_regular()?;
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

    fn mark_dirty(&self, index: u64) {
        pagecache::stored(&self.cache, index);
    }

    fn sync(&self, bytes: Range<u64>) -> Result<()> {
        pagecache::write_back(self, bytes)
    }
}
