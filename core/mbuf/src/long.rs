//! The parts of a long chain, on the heap.
//!
//! A list that is dropped out of line: nearly all chains have two parts at most, and each place
//! that drops one would otherwise carry the loop over a list's two halves and its
//! deallocation with it.

use alloc::collections::VecDeque;
use core::mem::ManuallyDrop;
use core::ops::{Deref, DerefMut};

use crate::mbuf::Mbuf;

/// Three parts or more.
#[derive(Clone)]
pub(crate) struct Long(ManuallyDrop<VecDeque<Mbuf>>);

impl Long {
    /// An empty list with room.
    pub fn with_capacity(parts: usize) -> Self {
        Self::of(VecDeque::with_capacity(parts))
    }

    fn of(parts: VecDeque<Mbuf>) -> Self {
        Self(ManuallyDrop::new(parts))
    }

    /// Cuts off what follows the first `count`.
    pub fn split_off(&mut self, count: usize) -> Self {
        Self::of(self.0.split_off(count))
    }
}

impl Deref for Long {
    type Target = VecDeque<Mbuf>;

    #[inline]
    fn deref(&self) -> &VecDeque<Mbuf> {
        &self.0
    }
}

impl DerefMut for Long {
    #[inline]
    fn deref_mut(&mut self) -> &mut VecDeque<Mbuf> {
        &mut self.0
    }
}

impl Drop for Long {
    #[cold]
    #[inline(never)]
    fn drop(&mut self) {
        // SAFETY: the list is not touched again: nothing but this drops it.
        unsafe { ManuallyDrop::drop(&mut self.0) };
    }
}
