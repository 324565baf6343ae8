//! Boxes that say when there is no memory for them: packets make us allocate, and must not make
//! us fail.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::ops::{Deref, DerefMut};

/// A value on the heap.
pub(crate) struct Boxed<T>(Box<[T; 1]>);

impl<T> Boxed<T> {
    /// `None` if the heap is exhausted.
    pub fn new(value: T) -> Option<Self> {
        let mut one = Vec::new();
        one.try_reserve_exact(1).ok()?;
        one.push(value);
        Box::<[T; 1]>::try_from(one).ok().map(Self)
    }
}

impl<T> Boxed<T> {
    /// The value itself.
    pub fn into_inner(self) -> T {
        let [value] = *self.0;
        value
    }
}

impl<T> Deref for Boxed<T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        let [value] = &*self.0;
        value
    }
}

impl<T> DerefMut for Boxed<T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        let [value] = &mut *self.0;
        value
    }
}
