//! A place on an inode where another part of the kernel hangs its object: a FIFO's pipe,
//! the socket that is bound to a name.

use alloc::sync::Arc;
use core::any::Any;

use mach::sync::Spin;

/// Holds one object of any type.
#[derive(Default)]
pub struct Attachment(Spin<Option<Arc<dyn Any + Send + Sync>>>);

impl Attachment {
    /// The object, if it is a `T`.
    pub fn get<T: Any + Send + Sync>(&self) -> Option<Arc<T>> {
        self.0.lock().clone()?.downcast().ok()
    }

    /// The object; made by `make` (which must not block) if there is none.
    pub fn get_or_insert<T: Any + Send + Sync>(&self, make: impl FnOnce() -> Arc<T>) -> Arc<T> {
        let mut held = self.0.lock();
        if let Some(object) = held.clone().and_then(|object| object.downcast().ok()) {
            return object;
        }
        let object = make();
        *held = Some(object.clone());
        object
    }

    /// Hangs `object` here.
    pub fn set<T: Any + Send + Sync>(&self, object: Arc<T>) {
        let old = self.0.lock().replace(object);
        drop(old);
    }

    /// Takes the object away.
    pub fn clear(&self) {
        let old = self.0.lock().take();
        drop(old);
    }
}
