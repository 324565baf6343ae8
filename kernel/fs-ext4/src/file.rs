//! The bytes of a file, and its pages in programs' memory.
//!
//! Programs' memory is touched only without `writing` and without the volume's lock: it may be a
//! mapping of this very file, whose page is brought in under them.

use alloc::collections::BTreeSet;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::ops::Range;
use core::sync::atomic::{AtomicUsize, Ordering};

use base::PAGE_BYTES;
use mach::mem::fallible::TryGrow;
use mm::garbage;
use mm::io::{Sink, Source, partial};
use mm::{self, FaultError, MemoryObject, Page, Sharing};
use sync::{Error, Result};
use vfs::file::{File, OpenFile, StatusFlags};
use vfs::{FileType, Metadata};

use crate::node::Node;
use crate::volume::now;

const PAGE: u64 = PAGE_BYTES as u64;
/// Bytes that one hold of the volume's lock moves.
const PIECE_BYTES: usize = 256 << 10;

/// A buffer for a piece.
fn buffer(len: usize) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    bytes.make_room(len)?;
    bytes.resize(len, 0);
    Ok(bytes)
}

impl Node {
    fn size_now(&self) -> Result<u64> {
        Ok(self.inode()?.size)
    }

    fn mapped(&self, index: u64) -> Option<Page> {
        self.pages.lock().get(&index).cloned()
    }

    /// Reads at most `count` bytes from the disk; none at the end.
    fn fetch(&self, offset: u64, count: usize) -> Result<Vec<u8>> {
        let mut bytes = buffer(count.min(PIECE_BYTES))?;
        let read = self
            .shared
            .with(|volume| volume.read(self.number, offset, &mut bytes))?;
        bytes.truncate(read);
        Ok(bytes)
    }

    /// Writes all of `data` to the disk.
    fn store(&self, offset: u64, data: &[u8]) -> Result<()> {
        let written = self
            .shared
            .with(|volume| volume.write(self.number, offset, data, now()))?;
        match written == data.len() {
            true => Ok(()),
            false => Err(Error::NoSpace),
        }
    }

    /// Zeroes what is mapped of a range.
    pub(super) fn zero_pages(&self, bytes: Range<u64>) {
        let pages = self.pages.lock();
        for (index, page) in pages.range(bytes.start / PAGE..bytes.end.div_ceil(PAGE)) {
            let (from, until) = (
                bytes.start.max(index * PAGE),
                bytes.end.min((index + 1) * PAGE),
            );
            page.zero((from - index * PAGE) as usize..(until - index * PAGE) as usize);
        }
    }

    /// Reads one stretch: of a mapped page, or of the disk up to the next mapped page.
    /// False at the end of the file.
    fn read_some(&self, at: u64, to: &mut Sink<'_>) -> Result<bool> {
        let within = (at % PAGE) as usize;
        if let Some(page) = self.mapped(at / PAGE) {
            let left = self.size_now()?.saturating_sub(at);
            let len = (PAGE_BYTES - within).min(usize::try_from(left).unwrap_or(usize::MAX));
            return Ok(to.put_page(&page, within, len)? != 0);
        }
        let next = self
            .pages
            .lock()
            .range(at / PAGE..)
            .next()
            .map(|(index, _)| index * PAGE);
        let until_next = next.map_or(u64::MAX, |next| next - at);
        let count = to
            .remaining()
            .min(usize::try_from(until_next).unwrap_or(usize::MAX));
        let data = self.fetch(at, count)?;
        to.put(&data)?;
        Ok(!data.is_empty())
    }

    /// Writes at `offset`, or at the end, and into pages that programs have mapped.
    fn write_through(&self, offset: Option<u64>, data: &[u8]) -> Result<u64> {
        let _writing = self.writing.lock();
        let start = match offset {
            Some(offset) => offset,
            None => self.size_now()?,
        };
        let end = start
            .checked_add(data.len() as u64)
            .ok_or(Error::FileTooLarge)?;
        self.store(start, data)?;
        let pages = self.pages.lock();
        for (index, page) in pages.range(start / PAGE..end.div_ceil(PAGE)) {
            let (from, until) = (start.max(index * PAGE), end.min((index + 1) * PAGE));
            let part = data.get((from - start) as usize..(until - start) as usize);
            page.write((from % PAGE) as usize, part.unwrap_or(&[]));
        }
        Ok(end)
    }

    /// Sets the size, on the disk and of what is mapped: programs lose the pages beyond it.
    pub(super) fn resize(&self, size: u64) -> Result<()> {
        let _writing = self.writing.lock();
        self.shared
            .with(|volume| volume.truncate(self.number, size, now()))?;
        let mut pages = self.pages.lock();
        let gone = pages.split_off(&size.div_ceil(PAGE));
        if let Some(page) = pages.get(&(size / PAGE)) {
            page.zero((size % PAGE) as usize..PAGE_BYTES);
        }
        drop(pages);
        garbage::discard(gone);
        if self.shown.load(Ordering::SeqCst) != 0 {
            mm::forget_beyond(core::ptr::from_ref(self).addr(), size);
        }
        Ok(())
    }

    /// Brings pages that programs stored to, within a range of bytes, to the disk.
    pub(super) fn write_back(&self, bytes: Range<u64>) -> Result<()> {
        let taken = self.take_dirty(bytes.start / PAGE..bytes.end.div_ceil(PAGE));
        if taken.is_empty() {
            return Ok(());
        }
        let _writing = self.writing.lock();
        let size = self.size_now()?;
        let mut buffer = buffer(PAGE_BYTES)?;
        for index in taken {
            let len = size.saturating_sub(index * PAGE).min(PAGE) as usize;
            if let (Some(page), Some(bytes)) = (self.mapped(index), buffer.get_mut(..len)) {
                page.read(0, bytes);
                self.store(index * PAGE, bytes)?;
            }
        }
        Ok(())
    }

    /// Gives up pages that no program has mapped or stored to, unless bytes are on their way.
    pub(super) fn forget_clean_pages(&self) {
        let Some(_writing) = self.writing.try_lock() else {
            return;
        };
        let dirty = self.dirty.lock();
        let is_kept = |index: &u64, page: &Page| dirty.contains(index) || !page.is_unique();
        let mut pages = self.pages.lock();
        pages.retain(|index, page| is_kept(index, page));
    }

    fn take_dirty(&self, indices: Range<u64>) -> BTreeSet<u64> {
        let mut dirty = self.dirty.lock();
        let mut taken = dirty.split_off(&indices.start);
        let mut behind = taken.split_off(&indices.end);
        dirty.append(&mut behind);
        taken
    }

    /// A page of the disk's bytes, from now on kept.
    fn fill_page(&self, index: u64) -> Result<Page> {
        let _writing = self.writing.lock();
        if let Some(page) = self.mapped(index) {
            return Ok(page);
        }
        let page = Page::zeroed().ok_or(Error::OutOfMemory)?;
        let mut filled = 0;
        while filled < PAGE_BYTES {
            let data = self.fetch(index * PAGE + filled as u64, PAGE_BYTES - filled)?;
            if data.is_empty() && filled == 0 {
                // It was cut off since the caller looked at its size.
                return Err(Error::Io);
            }
            if data.is_empty() {
                break;
            }
            page.write(filled, &data);
            filled += data.len();
        }
        self.pages.lock().insert(index, page.clone());
        Ok(page)
    }
}

impl File for Node {
    fn read_at(&self, _open: &OpenFile, offset: u64, to: &mut Sink<'_>) -> Result<usize> {
        let start = to.done();
        while to.remaining() > 0 {
            match self.read_some(offset + (to.done() - start) as u64, to) {
                Ok(true) => {}
                Ok(false) => break,
                Err(error) if to.done() == start => return Err(error),
                Err(_) => break,
            }
        }
        Ok(to.done() - start)
    }

    fn write_at(&self, open: &OpenFile, offset: u64, from: &mut Source<'_>) -> Result<usize> {
        let appends = open.flags().contains(StatusFlags::APPEND);
        let mut written = 0;
        while from.remaining() > 0 {
            let mut piece = buffer(from.remaining().min(PIECE_BYTES))?;
            let at = (!appends).then_some(offset + written as u64);
            let stored = from.take(&mut piece).and_then(|count| {
                self.write_through(at, piece.get(..count).unwrap_or(&[]))?;
                Ok(count)
            });
            match stored {
                Ok(count) => written += count,
                Err(error) => return partial(written, error),
            }
        }
        Ok(written)
    }

    fn is_seekable(&self) -> bool {
        true
    }

    fn metadata(&self) -> Result<Metadata> {
        self.read_metadata()
    }

    fn close(&self, _open: &OpenFile) {
        // close(2) reports no error that a later fsync(2) would not find again.
        let _ = self.write_back(0..u64::MAX);
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
        Some(&self.shown)
    }

    fn page(&self, index: u64, sharing: Sharing) -> core::result::Result<Page, FaultError> {
        if let Some(page) = self.ready_page(index, sharing) {
            return Ok(page);
        }
        if index >= MemoryObject::size(self).div_ceil(PAGE) {
            return Err(FaultError::Bus);
        }
        self.fill_page(index).map_err(|error| match error {
            Error::OutOfMemory => FaultError::OutOfMemory,
            _ => FaultError::Bus,
        })
    }

    fn ready_page(&self, index: u64, _sharing: Sharing) -> Option<Page> {
        self.mapped(index)
    }

    fn ready_pages(&self, pages: Range<u64>, _: Sharing, give: &mut dyn FnMut(u64, &Page)) {
        let present = self.pages.lock();
        for (&index, page) in present.range(pages) {
            give(index, page);
        }
    }

    fn size(&self) -> u64 {
        self.size_now().unwrap_or(0)
    }

    fn mark_dirty(&self, index: u64) {
        self.dirty.lock().insert(index);
    }

    fn sync(&self, bytes: Range<u64>) -> Result<()> {
        self.write_back(bytes)
    }
}
