//! Buffers that may break off, and pages on loan.

use mbuf::{BLOCK_CAPACITY, HeapPool, Mbuf, Pool};
use pipe::{Refusal, Sink, Source};

/// Bytes for the pipe, all of which can be had.
pub struct Bytes<'a>(pub &'a [u8]);

impl Source for Bytes<'_> {
    type Error = Refusal;

    fn remaining(&self) -> usize {
        self.0.len()
    }

    fn take(&mut self, to: &mut [u8]) -> Result<usize, Refusal> {
        let (now, later) = self.0.split_at(to.len().min(self.0.len()));
        to[..now.len()].copy_from_slice(now);
        self.0 = later;
        Ok(now.len())
    }
}

/// Gives its bytes in small parts, and fails after `good` of them.
pub struct Failing<'a> {
    pub bytes: &'a [u8],
    pub good: usize,
}

impl Source for Failing<'_> {
    type Error = Refusal;

    fn remaining(&self) -> usize {
        self.bytes.len()
    }

    fn take(&mut self, to: &mut [u8]) -> Result<usize, Refusal> {
        let count = to.len().min(self.good).min(self.bytes.len());
        if count == 0 {
            return Err(Refusal::Torn);
        }
        to[..count].copy_from_slice(&self.bytes[..count]);
        self.bytes = &self.bytes[count..];
        self.good -= count;
        Ok(count)
    }
}

/// Room for bytes from the pipe.
pub struct Buffer {
    pub bytes: Vec<u8>,
    pub room: usize,
}

impl Buffer {
    pub fn new(room: usize) -> Self {
        Self {
            bytes: Vec::new(),
            room,
        }
    }
}

impl Sink for Buffer {
    type Error = Refusal;

    fn remaining(&self) -> usize {
        self.room - self.bytes.len()
    }

    fn put(&mut self, bytes: &[u8]) -> Result<usize, Refusal> {
        let count = bytes.len().min(self.remaining());
        self.bytes.extend_from_slice(&bytes[..count]);
        Ok(count)
    }
}

/// A part of a page that has `bytes`, or the first of them.
pub fn page(pool: &HeapPool, bytes: &mut Vec<u8>) -> Mbuf {
    bytes.truncate(BLOCK_CAPACITY);
    let mut page = pool.alloc().expect("few are on loan");
    page.reserve(0);
    assert_eq!(page.append(bytes), bytes.len());
    page
}
