//! The way of most submissions: a read or a write of a part of one page.
//!
//! Where its blocks lie is remembered from the last one ([`Window`]): an area has few extents. What is not such a transfer, or not
//! inside of the area and the memory, is for [`Submission::check`](super::Submission::check) to judge.

use alloc::sync::Arc;

use super::SUBMISSION_BYTES;
use crate::map::{Map, Window};

const READ: u32 = 0x0001;
const WRITE: u32 = 0x0002;
/// Of the memory that programs share.
const PAGE_BYTES: u64 = 4096;

/// A transfer that may be carried out, if the memory is there.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PageAccess {
    /// Whether memory goes to blocks.
    pub is_write: bool,
    /// The first byte of the disk.
    pub first: u64,
    /// The first byte of the shared memory.
    pub memory: u64,
    /// The byte behind the last one, in the same page or at its end.
    pub memory_end: u64,
    /// Comes back with the completion.
    pub cookie: u64,
}

/// An area's map, while it may be used, and the part of it that was used last.
#[derive(Debug)]
pub struct Translation {
    map: Option<Arc<Map>>,
    /// Empty without a map (**Revoked**).
    window: Window,
    block_shift: u32,
}

impl Translation {
    /// Of an area with blocks of so many bytes, a power of two.
    pub fn new(map: Arc<Map>, block_bytes: u32) -> Self {
        Self {
            map: Some(map),
            window: Window::default(),
            block_shift: block_bytes.trailing_zeros(),
        }
    }

    /// The map, unless it was taken away.
    #[inline]
    pub fn map(&self) -> Option<&Arc<Map>> {
        self.map.as_ref()
    }

    /// The area has this map now, or none that may be used.
    pub fn set(&mut self, map: Option<Arc<Map>>) {
        self.map = map;
        self.window = Window::default();
    }

    /// What a copy of a submission says, if it is a transfer of a part of a page.
    #[inline]
    pub fn page(&mut self, bytes: &[u8; SUBMISSION_BYTES]) -> Option<PageAccess> {
        let words = bytes.as_chunks::<8>().0;
        let [head, first, memory, cookie] = words else {
            return None;
        };
        let [head, first, memory, cookie] =
            [head, first, memory, cookie].map(|word| u64::from_le_bytes(*word));
        let is_write = match head as u32 {
            READ => false,
            WRITE => true,
            _ => return None,
        };
        let count = head >> 32;
        // Below 2^32 blocks of at most 2^31 bytes.
        let bytes = count << self.block_shift;
        let in_page = memory % PAGE_BYTES;
        let is_aligned = memory & ((1 << self.block_shift) - 1) == 0;
        if !is_aligned || bytes == 0 || bytes > PAGE_BYTES - in_page {
            return None;
        }
        // The last page that there can be has no end.
        let memory_end = memory.checked_add(bytes)?;
        let block = match self.window.translate(first, count) {
            Some(block) => block,
            None => self.seek(first, count)?,
        };
        Some(PageAccess {
            is_write,
            first: block << self.block_shift,
            memory,
            memory_end,
            cookie,
        })
    }

    #[cold]
    fn seek(&mut self, first: u64, count: u64) -> Option<u64> {
        self.window = self.map.as_ref()?.window(first)?;
        self.window.translate(first, count)
    }
}
