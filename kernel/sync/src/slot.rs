//! A shared object that may be exchanged for another.

use alloc::sync::Arc;

use mach::sync::RwSpin;

/// Holds one `Arc<T>`; readers take a clone or look at it briefly.
pub struct Slot<T: ?Sized>(RwSpin<Arc<T>>);

impl<T: ?Sized> Slot<T> {
    /// Holding `value`.
    pub const fn new(value: Arc<T>) -> Self {
        Self(RwSpin::new(value))
    }

    /// The object held now.
    pub fn get(&self) -> Arc<T> {
        self.0.read().clone()
    }

    /// Looks at the object without a clone; `look` must not block.
    pub fn with<R>(&self, look: impl FnOnce(&Arc<T>) -> R) -> R {
        look(&self.0.read())
    }

    /// Puts `value` in, gives back what was there.
    pub fn replace(&self, value: Arc<T>) -> Arc<T> {
        core::mem::replace(&mut self.0.write(), value)
    }
}
