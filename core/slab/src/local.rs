//! One CPU's free objects.

use core::ptr::NonNull;

use crate::class::{CLASSES, Class};
use crate::depot::{Depot, PageSource};
use crate::list::List;

/// A stack of free objects for each class; see the crate's theory.
pub struct LocalHeap {
    lists: [List; CLASSES],
}

// SAFETY: Free: the objects belong to the lists, which move with the heap.
unsafe impl Send for LocalHeap {}

impl LocalHeap {
    /// A heap with no objects.
    pub const fn new() -> Self {
        Self {
            lists: [const { List::new() }; CLASSES],
        }
    }

    /// An object of `class` with any content. `None` asks for [`LocalHeap::refill`].
    #[inline(always)]
    pub fn alloc(&mut self, class: Class) -> Option<NonNull<u8>> {
        Some(self.lists[class.index()].pop()?.cast())
    }

    /// Fetches objects from the depot; `false` if memory is short.
    #[cold]
    pub fn refill(
        &mut self,
        class: Class,
        depot: &mut Depot,
        source: &mut impl PageSource,
    ) -> bool {
        let Some(chain) = depot.get(class, source) else {
            return false;
        };
        debug_assert_eq!(
            self.lists[class.index()].len,
            0,
            "only an empty list is refilled"
        );
        self.lists[class.index()] = chain;
        true
    }

    /// Takes an object back. `true` asks for [`LocalHeap::drain`].
    ///
    /// # Safety
    /// The object came from `alloc` of a heap on the same depot with the same class, and
    /// nobody uses it any more.
    #[inline(always)]
    pub unsafe fn free(&mut self, class: Class, object: NonNull<u8>) -> bool {
        let list = &mut self.lists[class.index()];
        // SAFETY: the caller returns an object of this class: Free holds.
        unsafe { list.push(object.cast()) };
        list.len > 2 * class.batch()
    }

    /// Gives a chain of objects to the depot.
    #[cold]
    pub fn drain(&mut self, class: Class, depot: &mut Depot) {
        let list = &mut self.lists[class.index()];
        if list.len >= class.batch() {
            depot.put(class, list.take(class.batch()));
        }
    }
}

impl Default for LocalHeap {
    fn default() -> Self {
        Self::new()
    }
}
