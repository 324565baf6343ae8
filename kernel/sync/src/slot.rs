//! A shared object that may be exchanged for another.

use alloc::sync::Arc;

use mach::sync::Spin;

/// Holds one `Arc<T>`; readers take a clone or look at it briefly.
pub struct Slot<T: ?Sized>(Spin<Arc<T>>);

impl<T: ?Sized> Slot<T> {
    /// Holding `value`.
    pub const fn new(value: Arc<T>) -> Self {
        Self(Spin::new(value))
    }

    /// The object held now.
    pub fn get(&self) -> Arc<T> {
        self.0.lock().clone()
    }

    /// Looks at the object without a clone; `look` must not block.
    pub fn with<R>(&self, look: impl FnOnce(&Arc<T>) -> R) -> R {
        look(&self.0.lock())
    }

    /// Puts `value` in, gives back what was there.
    pub fn replace(&self, value: Arc<T>) -> Arc<T> {
        core::mem::replace(&mut self.0.lock(), value)
    }
}
