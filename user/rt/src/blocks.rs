//! Memory that a device moves blocks to and from, and buffers of it.
//!
//! A [`Buffer`] is the only way to its bytes. Who gives one to a device gives it away, and gets it back when the device is
//! done with it: so no reference points to what a device writes. Buffers begin with a page, are as long as was asked for, and
//! go home when they are dropped. Where they are free is kept apart from the memory: a child of a fork, which has not got the
//! pages, may drop them.

use std::io;
use std::ops::{Deref, DerefMut, Range};
use std::slice;
use std::sync::{Arc, Mutex, PoisonError};

use base::PAGE_BYTES;

use crate::mapping::Mapping;

/// Some pages of which buffers are made; they stay mapped while a buffer of them is there.
#[derive(Clone, Debug)]
pub struct BlockMemory(Arc<Pages>);

#[derive(Debug)]
struct Pages {
    memory: Mapping,
    /// Whole pages in order, never two that touch.
    free: Mutex<Vec<Range<usize>>>,
}

impl BlockMemory {
    /// At least so many bytes, zeroed. A child of a fork does not get them.
    pub fn new(bytes: usize) -> io::Result<Self> {
        let bytes = bytes.max(1).next_multiple_of(PAGE_BYTES);
        Ok(Self::over(Mapping::anonymous(bytes)?))
    }

    /// All of a mapping, whole pages.
    pub(crate) fn over(memory: Mapping) -> Self {
        let all = 0..memory.bytes();
        let free = Mutex::new(vec![all]);
        Self(Arc::new(Pages { memory, free }))
    }

    /// Where the program has it.
    pub fn address(&self) -> usize {
        self.0.memory.start().addr().get()
    }

    /// How long it is.
    pub fn bytes(&self) -> usize {
        self.0.memory.bytes()
    }

    /// A buffer; `None` for none at all, or if no piece of memory is as long. It holds what was there before.
    pub fn buffer(&self, bytes: usize) -> Option<Buffer> {
        let whole = bytes.checked_next_multiple_of(PAGE_BYTES)?;
        let offset = self.0.take(whole).filter(|_| bytes != 0)?;
        Some(Buffer {
            pages: self.0.clone(),
            offset,
            bytes,
        })
    }

    /// Whether a buffer is of this memory.
    pub fn has(&self, buffer: &Buffer) -> bool {
        Arc::ptr_eq(&self.0, &buffer.pages)
    }
}

impl Pages {
    fn take(&self, whole: usize) -> Option<usize> {
        let mut free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        let at = free.iter().position(|piece| piece.len() >= whole)?;
        let piece = &mut free[at];
        let offset = piece.start;
        piece.start += whole;
        if piece.start == piece.end {
            free.remove(at);
        }
        Some(offset)
    }

    fn give(&self, range: Range<usize>) {
        let mut free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        let at = free.partition_point(|piece| piece.start < range.start);
        let joins_next = free.get(at).is_some_and(|next| next.start == range.end);
        let joins_last = at != 0 && free[at - 1].end == range.start;
        match (joins_last, joins_next) {
            (true, true) => free[at - 1].end = free.remove(at).end,
            (true, false) => free[at - 1].end = range.end,
            (false, true) => free[at].start = range.start,
            (false, false) => free.insert(at, range),
        }
    }
}

/// Bytes of a [`BlockMemory`] that nobody else has.
#[derive(Debug)]
pub struct Buffer {
    pages: Arc<Pages>,
    offset: usize,
    bytes: usize,
}

impl Buffer {
    /// Where it begins in its memory.
    pub fn offset(&self) -> u64 {
        self.offset as u64
    }
}

impl Deref for Buffer {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        // SAFETY: the bytes lie in the mapping, which the buffer keeps (Mapped), and they are the buffer's alone (Apart).
        unsafe {
            slice::from_raw_parts(
                self.pages.memory.start().as_ptr().add(self.offset),
                self.bytes,
            )
        }
    }
}

impl DerefMut for Buffer {
    #[inline]
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as above.
        unsafe {
            slice::from_raw_parts_mut(
                self.pages.memory.start().as_ptr().add(self.offset),
                self.bytes,
            )
        }
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        let whole = self.bytes.next_multiple_of(PAGE_BYTES);
        self.pages.give(self.offset..self.offset + whole);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_lie_apart_and_go_home() {
        let memory = BlockMemory::new(4 * PAGE_BYTES).unwrap();
        let mut first = memory.buffer(512).unwrap();
        let mut second = memory.buffer(2 * PAGE_BYTES).unwrap();
        first.fill(1);
        second.fill(2);
        assert!(first.iter().all(|byte| *byte == 1));
        assert_eq!((first.offset(), first.len()), (0, 512));
        assert!(memory.buffer(2 * PAGE_BYTES).is_none());
        let third = memory.buffer(PAGE_BYTES).unwrap();
        assert!(memory.buffer(1).is_none() && memory.has(&third));
        for given in [second, first, third] {
            drop(given);
        }
        assert_eq!(memory.buffer(4 * PAGE_BYTES).unwrap().offset(), 0);
        assert!(memory.buffer(0).is_none() && memory.buffer(usize::MAX).is_none());
    }
}
