//! Plain bytes of an area, by way of pages of the kernel's: for programs that have no ring.
//!
//! As with disks, nothing is cached: what is written has reached the device. A write whose first or last block is
//! not whole reads the stretch first; plain writes of one file exclude each other.

use alloc::vec::Vec;
use core::ops::Range;

use base::PAGE_BYTES;
use kernel_block::{Durability, Segment, Store};
use mach::mem::Page;
use mach::mem::fallible::TryGrow;
use mm::io::{Sink, Source};
use sync::{Error, Result};
use vsa::Map;

/// Bytes of one stretch.
const STRETCH_BYTES: u64 = 128 << 10;

/// Whole blocks around some bytes of an area, and pages for them.
pub struct Stretch<'a> {
    store: &'a Store,
    map: &'a Map,
    blocks: Range<u64>,
    pages: Vec<Page>,
    /// How far into the blocks the bytes begin, and how many they are.
    skip: usize,
    len: usize,
}

impl<'a> Stretch<'a> {
    /// Around at most `most` bytes from `at` on; `None` behind the end.
    pub fn new(store: &'a Store, map: &'a Map, at: u64, most: usize) -> Result<Option<Self>> {
        let block = store.sector_bytes();
        let end = map.blocks() * block;
        let start = at / block * block;
        let most = (most as u64)
            .min(STRETCH_BYTES - (at - start))
            .min(end.saturating_sub(at));
        if most == 0 {
            return Ok(None);
        }
        let blocks = at / block..(at + most).div_ceil(block);
        let bytes = ((blocks.end - blocks.start) * block) as usize;
        let mut pages = Vec::new();
        pages.make_room(bytes.div_ceil(PAGE_BYTES))?;
        for _ in 0..bytes.div_ceil(PAGE_BYTES) {
            pages.push(Page::alloc().ok_or(Error::OutOfMemory)?);
        }
        Ok(Some(Self {
            store,
            map,
            blocks,
            pages,
            skip: (at - start) as usize,
            len: most as usize,
        }))
    }

    /// Copies its bytes to the program; how many.
    pub fn read(&self, to: &mut Sink<'_>) -> Result<usize> {
        self.transfer(&mut |at, segments| self.store.read_pages(at, segments))?;
        let mut done = 0;
        for (page, first, len) in self.pieces() {
            match to.put_page(page, first, len) {
                Ok(count) => done += count,
                Err(error) => return mm::io::partial(done, error),
            }
        }
        Ok(done)
    }

    /// Takes its bytes from the program; how many.
    ///
    /// Errors: `BadAddress` if the program has not all of them; then nothing is written.
    pub fn write(&self, durability: Durability, from: &mut Source<'_>) -> Result<usize> {
        let block = self.store.sector_bytes() as usize;
        if !(self.skip | self.len).is_multiple_of(block) {
            self.transfer(&mut |at, segments| self.store.read_pages(at, segments))?;
        }
        let before = from.done();
        for (page, first, len) in self.pieces() {
            if from.take_page(page, first, len)? < len {
                from.rewind(from.done() - before);
                return Err(Error::BadAddress);
            }
        }
        let write =
            &mut |at, segments: &[Segment]| self.store.write_pages(at, segments, durability);
        match self.transfer(write) {
            Ok(()) => Ok(self.len),
            Err(error) => {
                from.rewind(from.done() - before);
                Err(error)
            }
        }
    }

    /// Moves each piece that lies together on the disk: from where on it, and which parts of the pages.
    fn transfer(&self, act: &mut dyn FnMut(u64, &[Segment]) -> Result<()>) -> Result<()> {
        let block = self.store.sector_bytes();
        let count = self.blocks.end - self.blocks.start;
        let pieces = self.map.translate(self.blocks.start, count);
        let mut at = 0;
        for piece in pieces.map_err(|_| Error::Io)? {
            let end = at + (piece.count() * block) as usize;
            act(piece.first() * block, &self.segments(at..end)?)?;
            at = end;
        }
        Ok(())
    }

    fn segments(&self, bytes: Range<usize>) -> Result<Vec<Segment>> {
        let mut segments = Vec::new();
        segments.make_room(bytes.len().div_ceil(PAGE_BYTES) + 1)?;
        let mut at = bytes.start;
        while at < bytes.end {
            let offset = at % PAGE_BYTES;
            let len = (PAGE_BYTES - offset).min(bytes.end - at);
            let page = self.pages.get(at / PAGE_BYTES).ok_or(Error::Io)?.clone();
            segments.push(Segment {
                page,
                bytes: offset..offset + len,
            });
            at += len;
        }
        Ok(segments)
    }

    /// Each page with the bytes of it that are meant.
    fn pieces(&self) -> impl Iterator<Item = (&Page, usize, usize)> {
        let (from, until) = (self.skip, self.skip + self.len);
        self.pages
            .iter()
            .enumerate()
            .filter_map(move |(index, page)| {
                let start = index * PAGE_BYTES;
                let first = from.saturating_sub(start);
                let end = until.saturating_sub(start).min(PAGE_BYTES);
                (first < end).then(|| (page, first, end - first))
            })
    }
}
