//! The pipe itself: its contents, and the counts by which others see them.

use base::lock::{Count, Family, Flag, Lock};
use base::{Memory, PAGE_BYTES};

use crate::Refusal;
use crate::contents::Contents;
use crate::end::Side;
use crate::flow::News;

/// A pipe whose lock, flags and counts are those of `F`, with memory of `M`.
pub struct Pipe<F: Family, M: Memory> {
    pub(crate) contents: F::Lock<Contents<M>>,
    /// Splice has the bytes; changed with the contents locked only.
    pub(crate) held: F::Flag,
    /// Bytes that could be read: none while they are held.
    len: F::Count,
    /// Bytes of the capacity that are taken.
    used: F::Count,
    capacity: F::Count,
    pub(crate) readers: Side<F>,
    pub(crate) writers: Side<F>,
}

impl<F: Family, M: Memory> Pipe<F, M> {
    /// An empty pipe of `pages` pages that nobody has open.
    pub fn new(pages: usize) -> Self {
        let pipe = Self {
            contents: Lock::new(Contents::new(pages)),
            held: F::Flag::default(),
            len: F::Count::default(),
            used: F::Count::default(),
            capacity: F::Count::default(),
            readers: Side::default(),
            writers: Side::default(),
        };
        pipe.capacity.set(pages * PAGE_BYTES);
        pipe
    }

    /// Bytes that could be read at once.
    pub fn len(&self) -> usize {
        self.len.get()
    }

    /// Whether nothing could be read at once.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes that still fit.
    pub fn room(&self) -> usize {
        self.capacity.get().saturating_sub(self.used.get())
    }

    /// How many bytes fit.
    pub fn capacity(&self) -> usize {
        self.capacity.get()
    }

    /// Makes it `pages` pages large, once `pay` allows that; what it holds must fit.
    pub fn resize<E: From<Refusal>>(
        &self,
        pages: usize,
        pay: impl FnOnce() -> Result<(), E>,
    ) -> Result<News, E> {
        let mut contents = self.contents.lock();
        pay()?;
        contents.resize(pages)?;
        self.capacity.set(contents.capacity());
        Ok(News::Room)
    }

    /// Shows how full it is to those who look without the lock.
    pub(crate) fn publish(&self, contents: &Contents<M>) {
        let readable = match self.held.get() {
            true => 0,
            false => contents.len(),
        };
        self.len.set(readable);
        self.used.set(contents.used());
    }
}
