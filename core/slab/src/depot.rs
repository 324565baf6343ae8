//! What all CPUs share: full chains of free objects, and slabs cut into them.

use core::ptr::NonNull;

use base::PAGE_BYTES;

use crate::class::{CLASSES, Class};
use crate::list::{List, Node};

/// Where slabs come from.
///
/// # Safety
/// The pages are writable, aligned to a page and used by nobody else.
pub unsafe trait PageSource {
    /// `count` contiguous pages with any content, or `None` when memory is short.
    fn pages(&mut self, count: usize) -> Option<NonNull<u8>>;
}

/// Chains of [`Class::batch`] objects of each class. Callers hold a lock around it.
pub struct Depot {
    chains: [Option<NonNull<Node>>; CLASSES],
    pages: usize,
}

// SAFETY: Free: the objects on the chains belong to the depot, whichever CPU uses it.
unsafe impl Send for Depot {}

impl Depot {
    /// A depot with nothing in it.
    pub const fn new() -> Self {
        Self {
            chains: [None; CLASSES],
            pages: 0,
        }
    }

    /// Pages cut into objects so far.
    pub const fn pages(&self) -> usize {
        self.pages
    }

    pub(crate) fn put(&mut self, class: Class, chain: List) {
        debug_assert_eq!(chain.len, class.batch(), "chains in the depot are full");
        let Some(mut head) = chain.into_head() else {
            return;
        };
        let first = &mut self.chains[class.index()];
        // SAFETY: Free: the chain, and so its first object, is ours now.
        unsafe { head.as_mut().next_chain = *first };
        *first = Some(head);
    }

    /// A chain of free objects, from the stock or from a new slab.
    pub(crate) fn get(&mut self, class: Class, source: &mut impl PageSource) -> Option<List> {
        let first = &mut self.chains[class.index()];
        let Some(head) = *first else {
            return self.cut(class, source);
        };
        // SAFETY: Free: the chain's first object holds the link that `put` stored.
        *first = unsafe { head.as_ref().next_chain };
        // SAFETY: `put` took the head of a list of `batch` objects.
        Some(unsafe { List::from_head(head, class.batch()) })
    }

    /// Cuts a new slab: full chains go to the stock, the rest is the result.
    fn cut(&mut self, class: Class, source: &mut impl PageSource) -> Option<List> {
        let (slab, pages) = match source.pages(class.slab_pages()) {
            Some(slab) => (slab, class.slab_pages()),
            None => (source.pages(1)?, 1),
        };
        self.pages += pages;
        let mut rest = List::new();
        for object in 0..pages * PAGE_BYTES / class.bytes() {
            if rest.len == class.batch() {
                self.put(class, core::mem::replace(&mut rest, List::new()));
            }
            // SAFETY: the object lies inside of the slab, which `PageSource` gave to us
            // alone; sizes are multiples of 16, so it satisfies Free.
            unsafe { rest.push(slab.byte_add(object * class.bytes()).cast()) };
        }
        Some(rest)
    }
}

impl Default for Depot {
    fn default() -> Self {
        Self::new()
    }
}
