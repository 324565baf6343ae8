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
use core::marker::PhantomData;

use base::{Memory, NoMemory, PAGE_BYTES};

use crate::{Refusal, Sink, Source};

const PAGE: u64 = PAGE_BYTES as u64;

/// One page's bytes; empty if not allocated.
type Page = Vec<u8>;

/// A queue of bytes with a fixed capacity.
pub struct ByteRing<M: Memory> {
    pages: Vec<Page>,
    spare: Page,
    head: u64,
    tail: u64,
    memory: PhantomData<M>,
}

impl<M: Memory> ByteRing<M> {
    /// An empty ring of `pages` pages, at least one; they are allocated when needed.
    pub fn new(pages: usize) -> Self {
        Self {
            pages: empty_pages(pages),
            spare: Page::new(),
            head: 0,
            tail: 0,
            memory: PhantomData,
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
    pub fn put<S: Source>(&mut self, from: &mut S, limit: usize) -> Result<usize, S::Error> {
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

    fn put_chunk<S: Source>(&mut self, from: &mut S, limit: usize) -> Result<usize, S::Error> {
        let (index, offset) = self.place(self.tail);
        self.allocate(index).map_err(Refusal::from)?;
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
    pub fn take<S: Sink>(&mut self, to: &mut S, limit: usize) -> Result<usize, S::Error> {
        let count = self.peek(0, to, limit)?;
        self.skip(count);
        Ok(count)
    }

    /// Like [`ByteRing::take`] from `skip` bytes on, but the bytes stay.
    pub fn peek<S: Sink>(&self, skip: usize, to: &mut S, limit: usize) -> Result<usize, S::Error> {
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

    /// Changes the capacity to `pages` pages; [`Refusal::DoesNotFit`] if the contents do not.
    /// Positions stay.
    pub fn resize(&mut self, pages: usize) -> Result<(), Refusal> {
        let mut other = Self::new(pages);
        (other.head, other.tail) = (self.head, self.head);
        if self.len() > other.capacity() {
            return Err(Refusal::DoesNotFit);
        }
        let mut position = self.head;
        while position < self.tail {
            let (index, offset) = self.place(position);
            let count = (PAGE_BYTES - offset).min((self.tail - position) as usize);
            let bytes = &self.pages[index][offset..offset + count];
            other.put(&mut Bytes(bytes), count)?;
            position += count as u64;
        }
        *self = other;
        Ok(())
    }

    /// Makes the capacity at least `bytes`, by no copy but of a page that holds both ends.
    /// Positions stay.
    pub fn grow(&mut self, bytes: usize) -> Result<(), NoMemory> {
        let wanted = bytes.div_ceil(PAGE_BYTES);
        if wanted <= self.pages.len() {
            return Ok(());
        }
        let count = wanted.next_power_of_two();
        let mut pages = Vec::new();
        M::reserve(|| pages.try_reserve_exact(count))?;
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
    fn last_bytes(&self) -> Result<Page, NoMemory> {
        let (index, len) = self.place(self.tail);
        let mut page = new_page::<M>()?;
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

    fn allocate(&mut self, index: usize) -> Result<(), NoMemory> {
        if !self.pages[index].is_empty() {
            return Ok(());
        }
        let mut page = core::mem::take(&mut self.spare);
        if page.is_empty() {
            page = new_page::<M>()?;
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

fn new_page<M: Memory>() -> Result<Page, NoMemory> {
    let mut page = Page::new();
    M::reserve(|| page.try_reserve_exact(PAGE_BYTES))?;
    page.resize(PAGE_BYTES, 0);
    Ok(page)
}

fn empty_pages(count: usize) -> Vec<Page> {
    core::iter::repeat_with(Page::new)
        .take(count.max(1))
        .collect()
}

/// Bytes on their way from one ring to another.
struct Bytes<'a>(&'a [u8]);

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
