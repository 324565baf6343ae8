//! One CPU's, or one thread's, free objects.

use crate::class::{CLASSES, Class};
use crate::depot::{Depot, SlabSource};
use crate::magazine::{Magazine, Round};
use crate::slab::BadFree;

/// A magazine for each class, used by one flow of control; see the crate's theory. All
/// zeros is a valid heap without storage.
///
/// `SLOTS` is above every value that its owner's map of classes may hold, so that no index
/// is checked. What those above [`CLASSES`] mean is the owner's business.
#[repr(C)]
pub struct LocalHeap<const SLOTS: usize = 64> {
    /// The first has no class: it has no storage, so objects without a class (and none
    /// has any) take the slow path without a question of their own.
    magazines: [Magazine; SLOTS],
}

impl<const SLOTS: usize> LocalHeap<SLOTS> {
    /// A heap with no objects and no storage.
    pub const fn new() -> Self {
        const { assert!(CLASSES < SLOTS && SLOTS.is_power_of_two()) };
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

    /// The magazine at an index.
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

impl<const SLOTS: usize> Default for LocalHeap<SLOTS> {
    fn default() -> Self {
        Self::new()
    }
}
