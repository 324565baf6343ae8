//! One CPU's, or one thread's, free objects.

use crate::class::{CLASSES, Class};
use crate::depot::{Depot, SlabSource};
use crate::magazine::{Magazine, Round};
use crate::slab::BadFree;

/// A magazine for each class, used by one flow of control; see the crate's theory. All
/// zeros is a valid heap without storage.
#[repr(C)]
pub struct LocalHeap {
    /// The first has no class: it has no storage, so objects without a class (and none
    /// has any) take the slow path without a question of their own.
    magazines: [Magazine; SLOTS],
}

/// Room for every value that a map of classes may hold, so that no index is checked.
const SLOTS: usize = 64;
const _: () = assert!(CLASSES < SLOTS);

impl LocalHeap {
    /// A heap with no objects and no storage.
    pub const fn new() -> Self {
        Self {
            magazines: [const { Magazine::new() }; SLOTS],
        }
    }

    /// The magazine of a class.
    #[inline(always)]
    pub fn magazine(&mut self, class: Class) -> &mut Magazine {
        // SAFETY: the index of a class is at most `CLASSES`, which is below `SLOTS`.
        unsafe { self.magazines.get_unchecked_mut(class.index()) }
    }

    /// The magazine at an index; above [`CLASSES`] are such as never get storage.
    #[inline(always)]
    pub fn magazine_at(&mut self, index: usize) -> &mut Magazine {
        &mut self.magazines[index % SLOTS]
    }

    /// An object of `class` with any content. `None` asks for [`LocalHeap::refill`].
    #[inline(always)]
    pub fn alloc(&mut self, class: Class) -> Option<Round> {
        self.magazine(class).pop()
    }

    /// Fetches up to `count` objects from the depot; `false` if memory is short.
    #[cold]
    pub fn refill<const WORDS: usize>(
        &mut self,
        class: Class,
        count: usize,
        depot: &mut Depot<WORDS>,
        source: &mut impl SlabSource<WORDS>,
    ) -> bool {
        depot.take(count, self.magazine(class), source) > 0
    }

    /// Takes an object back. `false` asks for [`LocalHeap::drain`] and another try.
    ///
    /// # Safety
    /// The object came from `alloc` of a heap on the same depots with the same class, and
    /// nobody uses it any more.
    #[inline(always)]
    pub unsafe fn free(&mut self, class: Class, object: Round) -> bool {
        self.magazine(class).push(object)
    }

    /// Gives the `count` oldest objects of a class to the depot.
    #[cold]
    pub fn drain<const WORDS: usize>(
        &mut self,
        class: Class,
        count: usize,
        depot: &mut Depot<WORDS>,
        source: &mut impl SlabSource<WORDS>,
    ) -> Result<(), BadFree> {
        depot.give(count, self.magazine(class), source)
    }
}

impl Default for LocalHeap {
    fn default() -> Self {
        Self::new()
    }
}
