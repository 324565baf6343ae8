//! The bytes of a file of the host, below its pages (`kernel_pagecache`).

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::ops::Range;
use core::sync::atomic::AtomicUsize;

use base::PAGE_BYTES;
use kernel_pagecache::{self as pagecache, Backing, Cache, Keeps};
use mach::mem::fallible;
use mm::io::{Sink, Source};
use mm::{FaultError, MemoryObject, Page, Sharing, Synced};
use ninep::Request;
use sync::{Error, Result};

use super::answer::Answer;
use super::node::Node;
use vfs::file::{File, OpenFile};
use vfs::{FileType, Metadata};

const PAGE: u64 = PAGE_BYTES as u64;

impl Node {
    /// Reads at most `count` bytes from the host; none at the end.
    fn ask(&self, offset: u64, count: usize) -> Result<Vec<u8>> {
        let fid = self.opened()?.fid();
        let count = count.min(self.volume.io_bytes()) as u32;
        match self.volume.call(&Request::Read { fid, offset, count })? {
            Answer::Data(data) => Ok(data),
            _ => Err(Error::Io),
        }
    }

    /// Fills pages with as few requests as possible.
    fn fill_pages(&self, first: u64, pages: &[Page]) -> Result<()> {
        let wanted = pages.len() * PAGE_BYTES;
        let mut filled = 0;
        while filled < wanted {
            let data = self.ask(first * PAGE + filled as u64, wanted - filled)?;
            let data = data.get(..wanted - filled).unwrap_or(&data);
            if data.is_empty() {
                break;
            }
            scatter(pages, filled, data);
            filled += data.len();
        }
        let last = wanted.saturating_sub(PAGE_BYTES);
        match pages.last().filter(|_| filled > last) {
            Some(page) => page.zero(filled - last..PAGE_BYTES),
            // It was cut off since the caller looked at its size.
            None => return Err(Error::Io),
        }
        Ok(())
    }
}

/// Puts bytes into pages, from byte `at` of the first one on.
fn scatter(pages: &[Page], at: usize, data: &[u8]) {
    let (mut at, mut rest) = (at, data);
    while let (Some(page), false) = (pages.get(at / PAGE_BYTES), rest.is_empty()) {
        let len = (PAGE_BYTES - at % PAGE_BYTES).min(rest.len());
        let (piece, more) = rest.split_at(len);
        page.write(at % PAGE_BYTES, piece);
        (at, rest) = (at + len, more);
    }
}

/// Others change the host's files, so only what programs have mapped is kept, unless the mount says otherwise.
impl Backing for Node {
    fn cache(&self) -> &Cache {
        &self.cache
    }

    fn keeps(&self) -> Keeps {
        match self.volume.is_immutable {
            true => Keeps::All,
            false => Keeps::Mapped,
        }
    }

    fn size(&self) -> Result<u64> {
        match self.volume.is_immutable {
            true => Ok(self.first_size),
            false => Ok(self.attributes()?.size),
        }
    }

    fn piece_bytes(&self) -> usize {
        self.volume.io_bytes()
    }

    fn fill(&self, first: u64, pages: &[Page]) -> Result<bool> {
        self.fill_pages(first, pages).map(|()| true)
    }

    fn fetch(&self, offset: u64, into: &mut [u8]) -> Result<usize> {
        let data = self.ask(offset, into.len())?;
        let len = data.len().min(into.len());
        let (Some(into), Some(data)) = (into.get_mut(..len), data.get(..len)) else {
            return Err(Error::Io);
        };
        into.copy_from_slice(data);
        Ok(len)
    }

    fn store(&self, offset: u64, data: &[u8]) -> Result<usize> {
        let fid = self.opened()?.fid();
        let (mut offset, mut rest) = (offset, data);
        while !rest.is_empty() {
            let piece = rest.get(..self.volume.io_bytes()).unwrap_or(rest);
            let write = Request::Write {
                fid,
                offset,
                data: piece,
            };
            match self.volume.call(&write)? {
                Answer::Written(0) if rest.len() == data.len() => return Err(Error::NoSpace),
                Answer::Written(0) => break,
                Answer::Written(count) => {
                    offset += count as u64;
                    rest = rest.get(count..).ok_or(Error::Io)?;
                }
                _ => return Err(Error::Io),
            }
        }
        Ok(data.len() - rest.len())
    }

    fn bring(&self, first: u64, pages: &[Page], size: u64) -> Result<u64> {
        let mut buffer = fallible::zeroed(PAGE_BYTES)?;
        for (index, page) in (first..).zip(pages) {
            let len = size.saturating_sub(index * PAGE).min(PAGE) as usize;
            if let Some(bytes) = buffer.get_mut(..len) {
                page.read(0, bytes);
                if self.store(index * PAGE, bytes)? < len {
                    return Err(Error::NoSpace);
                }
            }
        }
        Ok(pages.len() as u64)
    }
}

impl File for Node {
    fn read_at(&self, _open: &OpenFile, offset: u64, to: &mut Sink<'_>) -> Result<usize> {
        pagecache::read_at(self, offset, to)
    }

    fn write_at(&self, open: &OpenFile, offset: u64, from: &mut Source<'_>) -> Result<usize> {
        self.volume.check_mutable()?;
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
