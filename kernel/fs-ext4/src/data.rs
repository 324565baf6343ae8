//! The bytes of files on the disk, below their pages (`kernel_pagecache`).
//!
//! Data go between pages and the disk without the volume's lock, which is only held to ask where
//! they are.

use alloc::vec::Vec;
use core::ops::Range;
use core::sync::atomic::Ordering;

use base::PAGE_BYTES;
use ext4::{Allocate, Mapping};
use kernel_block::Segment;
use kernel_pagecache::{self as pagecache, Backing, Cache, Keeps};
use mach::mem::fallible::{self, TryGrow};
use mm::Page;
use sync::{Error, Result};

use crate::node::Node;
use crate::volume::now;

const PAGE: u64 = PAGE_BYTES as u64;
/// Bytes that one hold of the volume's lock moves.
const PIECE_BYTES: usize = 256 << 10;

/// The parts of pages, of which the first holds the byte `start` of a file, that are in `bytes`.
fn parts(pages: &[Page], start: u64, bytes: Range<u64>) -> Result<Vec<Segment>> {
    let mut parts = Vec::new();
    let mut at = bytes.start;
    parts.make_room(((bytes.end - bytes.start) / PAGE + 2) as usize)?;
    while at < bytes.end {
        let index = ((at - start) / PAGE) as usize;
        let Some(page) = pages.get(index) else { break };
        let end = (at / PAGE * PAGE + PAGE).min(bytes.end);
        let from = (at % PAGE) as usize;
        parts.push(Segment {
            page: page.clone(),
            bytes: from..from + (end - at) as usize,
        });
        at = end;
    }
    Ok(parts)
}

impl Node {
    /// Bytes of a regular file.
    pub(super) fn bytes(&self) -> u64 {
        self.size.load(Ordering::Acquire)
    }

    pub(super) fn set_bytes(&self, size: u64) {
        self.size.store(size, Ordering::Release);
    }

    /// Where the block with the byte `at` is, and how many bytes lie there in one piece.
    fn place_of(&self, at: u64) -> Result<(Mapping, u64)> {
        let each = self.shared.block_bytes;
        let block = u32::try_from(at / each).map_err(|_| Error::FileTooLarge)?;
        let run = self.shared.with(|volume| volume.map(self.number, block))?;
        Ok((run.place, u64::from(run.len) * each))
    }

    /// Sets the size, on the disk and of the pages.
    pub(super) fn resize(&self, size: u64) -> Result<()> {
        pagecache::resize(self, size, || {
            let (number, shared) = (self.number, &self.shared);
            shared.with(|volume| volume.truncate(number, size, now()))?;
            self.set_bytes(size);
            Ok(())
        })
    }

    /// fallocate(2).
    pub(super) fn reserve(&self, range: Range<u64>, how: Allocate) -> Result<()> {
        self.cache.alone(|| {
            let (number, bytes) = (self.number, range.clone());
            self.shared
                .with(|volume| volume.fallocate(number, bytes, how, now()))?;
            match how {
                Allocate::Extend => self.set_bytes(self.bytes().max(range.end)),
                Allocate::KeepSize => {}
                Allocate::PunchHole | Allocate::ZeroRange => pagecache::zero(self, range),
            }
            Ok(())
        })
    }
}

impl Backing for Node {
    fn cache(&self) -> &Cache {
        &self.cache
    }

    fn keeps(&self) -> Keeps {
        Keeps::All
    }

    fn size(&self) -> Result<u64> {
        Ok(self.bytes())
    }

    fn piece_bytes(&self) -> usize {
        PIECE_BYTES
    }

    fn fill(&self, first: u64, pages: &[Page]) -> Result<()> {
        let start = first * PAGE;
        let end = start + pages.len() as u64 * PAGE;
        let data_end = self.bytes().min(end);
        let mut at = start;
        while at < end {
            let (place, len) = match at < data_end {
                true => self.place_of(at)?,
                false => (Mapping::Hole, end - at),
            };
            let until = (at + len).min(end);
            let parts = parts(pages, start, at..until)?;
            match place {
                Mapping::Written(block) => {
                    let offset = block * self.shared.block_bytes;
                    self.shared.store.read_pages(offset, &parts)?;
                }
                _ => parts
                    .into_iter()
                    .for_each(|part| part.page.zero(part.bytes)),
            }
            at = until;
        }
        // Images of others may have something there.
        for part in parts(pages, start, data_end.max(start)..end)? {
            part.page.zero(part.bytes);
        }
        Ok(())
    }

    fn fetch(&self, offset: u64, into: &mut [u8]) -> Result<usize> {
        self.shared
            .with(|volume| volume.read(self.number, offset, into))
    }

    fn store(&self, offset: u64, data: &[u8]) -> Result<()> {
        let written = self
            .shared
            .with(|volume| volume.write(self.number, offset, data, now()))?;
        let end = offset + written as u64;
        self.set_bytes(self.bytes().max(end));
        match written == data.len() {
            true => Ok(()),
            false => Err(Error::NoSpace),
        }
    }

    fn bring(&self, first: u64, pages: &[Page], size: u64) -> Result<()> {
        let mut buffer = fallible::zeroed(PAGE_BYTES)?;
        for (index, page) in (first..).zip(pages) {
            let len = size.saturating_sub(index * PAGE).min(PAGE) as usize;
            if let Some(bytes) = buffer.get_mut(..len) {
                page.read(0, bytes);
                self.store(index * PAGE, bytes)?;
            }
        }
        Ok(())
    }
}
