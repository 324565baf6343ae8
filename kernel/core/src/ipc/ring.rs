//! A ring of bytes in pages that come and go.
//!
//! Positions only grow; the byte at position `p` lies in page `p / PAGE_BYTES %
//! pages.len()`. A page is allocated when the first byte goes in, and freed when the last
//! one leaves, but for one that is kept: a pipe that is drained after each write does not
//! allocate. A page may hold the first bytes of the ring and, before them, its last.
//!
//! Invariant: `head <= tail <= head + capacity`, and every page that holds a byte between
//! them is there.

use alloc::vec::Vec;

use base::PAGE_BYTES;

use crate::error::{Error, Result};
use crate::io::{Sink, Source};
use mach::mem::fallible::TryGrow;

const PAGE: u64 = PAGE_BYTES as u64;

/// One page's bytes; empty if not allocated.
type Page = Vec<u8>;

/// A queue of bytes with a fixed capacity.
pub struct ByteRing {
    pages: Vec<Page>,
    spare: Page,
    head: u64,
    tail: u64,
}

impl ByteRing {
    /// An empty ring of `pages` pages, at least one; they are allocated when needed.
    pub fn new(pages: usize) -> Self {
        Self {
            pages: empty_pages(pages),
            spare: Page::new(),
            head: 0,
            tail: 0,
        }
    }

    /// Bytes in it.
    pub fn len(&self) -> usize {
        (self.tail - self.head) as usize
    }

    /// Whether no byte is in it.
    pub fn is_empty(&self) -> bool {
        self.tail == self.head
    }

    /// Bytes that fit when it is empty.
    pub fn capacity(&self) -> usize {
        self.pages.len() * PAGE_BYTES
    }

    /// Bytes that still fit.
    pub fn room(&self) -> usize {
        self.capacity() - self.len()
    }

    /// Position of the next byte that comes out.
    pub fn head(&self) -> u64 {
        self.head
    }

    /// Position of the next byte that goes in.
    pub fn tail(&self) -> u64 {
        self.tail
    }

    /// Takes bytes from `from`, at most `limit` and what fits; returns how many.
    ///
    /// After a bad address what came before it stays; the error shows if that is nothing.
    pub fn put(&mut self, from: &mut Source<'_>, limit: usize) -> Result<usize> {
        let wanted = limit.min(self.room()).min(from.remaining());
        let mut done = 0;
        while done < wanted {
            match self.put_chunk(from, wanted - done) {
                Ok(count) => done += count,
                Err(error) if done == 0 => return Err(error),
                Err(_) => break,
            }
        }
        Ok(done)
    }

    fn put_chunk(&mut self, from: &mut Source<'_>, limit: usize) -> Result<usize> {
        let (index, offset) = self.place(self.tail);
        self.allocate(index)?;
        let count = limit.min(PAGE_BYTES - offset);
        let taken = from.take(&mut self.pages[index][offset..offset + count]);
        if taken.is_err() {
            self.release_unused();
        }
        let count = taken?;
        self.tail += count as u64;
        Ok(count)
    }

    /// The pieces in which the bytes from position `start` on lie.
    pub fn pieces(&self, start: u64) -> impl Iterator<Item = &[u8]> {
        let mut position = start.max(self.head);
        core::iter::from_fn(move || {
            let (index, offset) = self.place(position);
            let left = (self.tail - position) as usize;
            let count = left.min(PAGE_BYTES - offset);
            position += count as u64;
            (count != 0).then(|| &self.pages[index][offset..offset + count])
        })
    }

    /// Gives bytes to `to`, at most `limit`; returns how many.
    pub fn take(&mut self, to: &mut Sink<'_>, limit: usize) -> Result<usize> {
        let count = self.peek(0, to, limit)?;
        self.skip(count);
        Ok(count)
    }

    /// Like [`ByteRing::take`] from `skip` bytes on, but the bytes stay.
    pub fn peek(&self, skip: usize, to: &mut Sink<'_>, limit: usize) -> Result<usize> {
        let mut position = self.head + (skip as u64).min(self.tail - self.head);
        let available = (self.tail - position) as usize;
        let end = position + limit.min(available).min(to.remaining()) as u64;
        let start = position;
        while position < end {
            let (index, offset) = self.place(position);
            let count = (PAGE_BYTES - offset).min((end - position) as usize);
            match to.put(&self.pages[index][offset..offset + count]) {
                Ok(count) => position += count as u64,
                Err(error) if position == start => return Err(error),
                Err(_) => break,
            }
        }
        Ok((position - start) as usize)
    }

    /// Drops the next `count` bytes, or all if there are fewer.
    pub fn skip(&mut self, count: usize) {
        let end = self.head + (count as u64).min(self.tail - self.head);
        while self.head / PAGE < end / PAGE {
            let (index, _) = self.place(self.head);
            self.head = (self.head / PAGE + 1) * PAGE;
            if self.tail <= self.head - PAGE + self.capacity() as u64 {
                self.free(index);
            }
        }
        self.head = end;
        self.release_unused();
    }

    /// Takes back the last `count` bytes that went in.
    pub fn take_back(&mut self, count: usize) {
        self.tail -= (count as u64).min(self.tail - self.head);
        self.release_unused();
    }

    /// Changes the capacity to `pages` pages; [`Error::Busy`] if the contents do not fit.
    /// Positions stay.
    pub fn resize(&mut self, pages: usize) -> Result<()> {
        let mut other = Self::new(pages);
        (other.head, other.tail) = (self.head, self.head);
        if self.len() > other.capacity() {
            return Err(Error::Busy);
        }
        let mut position = self.head;
        while position < self.tail {
            let (index, offset) = self.place(position);
            let count = (PAGE_BYTES - offset).min((self.tail - position) as usize);
            let bytes = &self.pages[index][offset..offset + count];
            other.put(&mut Source::kernel(bytes), count)?;
            position += count as u64;
        }
        *self = other;
        Ok(())
    }

    /// Makes the capacity at least `bytes`, by no copy but of a page that holds both ends.
    /// Positions stay.
    pub fn grow(&mut self, bytes: usize) -> Result<()> {
        let wanted = bytes.div_ceil(PAGE_BYTES);
        if wanted <= self.pages.len() {
            return Ok(());
        }
        let count = wanted.next_power_of_two();
        let mut pages = Vec::new();
        pages.make_room(count).map_err(|_| Error::OutOfMemory)?;
        pages.resize_with(count, Page::new);
        let place = |number: u64| (number % count as u64) as usize;
        let (first, mut end) = (self.head / PAGE, self.tail.div_ceil(PAGE));
        if end - first > self.pages.len() as u64 {
            end -= 1;
            pages[place(end)] = self.last_bytes()?;
        }
        for number in first..end {
            let (index, _) = self.place(number * PAGE);
            pages[place(number)] = core::mem::take(&mut self.pages[index]);
        }
        self.pages = pages;
        Ok(())
    }

    /// A copy of the last page, which is not full.
    fn last_bytes(&self) -> Result<Page> {
        let (index, len) = self.place(self.tail);
        let mut page = new_page()?;
        page[..len].copy_from_slice(&self.pages[index][..len]);
        Ok(page)
    }

    fn place(&self, position: u64) -> (usize, usize) {
        let page = (position / PAGE) % self.pages.len() as u64;
        (page as usize, (position % PAGE) as usize)
    }

    /// An empty ring starts again on a page boundary, so that a small write never needs
    /// two pages.
    fn release_unused(&mut self) {
        if self.is_empty() {
            let (index, _) = self.place(self.head);
            self.free(index);
            self.head = self.head.next_multiple_of(PAGE);
            self.tail = self.head;
        }
    }

    fn allocate(&mut self, index: usize) -> Result<()> {
        if !self.pages[index].is_empty() {
            return Ok(());
        }
        let mut page = core::mem::take(&mut self.spare);
        if page.is_empty() {
            page = new_page()?;
        }
        self.pages[index] = page;
        Ok(())
    }

    fn free(&mut self, index: usize) {
        let page = core::mem::take(&mut self.pages[index]);
        if self.spare.is_empty() {
            self.spare = page;
        }
    }
}

fn new_page() -> Result<Page> {
    let mut page = Page::new();
    page.make_room(PAGE_BYTES).map_err(|_| Error::OutOfMemory)?;
    page.resize(PAGE_BYTES, 0);
    Ok(page)
}

fn empty_pages(count: usize) -> Vec<Page> {
    core::iter::repeat_with(Page::new)
        .take(count.max(1))
        .collect()
}
