//! Who looks on at a place where packets pass.
//!
//! While nobody does, a packet costs a load and a branch.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicUsize, Ordering};

use mach::sync::Spin;
use sync::{Error, Result};

/// Sockets that may look on at the same time: each looks at each packet.
const LISTENERS_MAX: usize = 64;

/// The listeners of a place.
pub struct Listeners<T> {
    count: AtomicUsize,
    listeners: Spin<Vec<Arc<T>>>,
}

/// Nobody.
impl<T> Default for Listeners<T> {
    fn default() -> Self {
        Self {
            count: AtomicUsize::new(0),
            listeners: Spin::new(Vec::new()),
        }
    }
}

impl<T> Listeners<T> {
    /// Whether nobody looks on.
    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        self.count.load(Ordering::Relaxed) == 0
    }

    /// Calls `show` with each of them.
    pub fn each(&self, show: impl FnMut(&Arc<T>)) {
        self.listeners.lock().iter().for_each(show);
    }

    /// From now on `listener` looks on.
    ///
    /// Errors: `NoBuffers` if too many do already.
    pub fn add(&self, listener: &Arc<T>) -> Result<()> {
        let mut listeners = self.listeners.lock();
        if listeners.iter().any(|known| Arc::ptr_eq(known, listener)) {
            return Ok(());
        }
        if listeners.len() >= LISTENERS_MAX {
            return Err(Error::NoBuffers);
        }
        listeners.push(listener.clone());
        self.count.store(listeners.len(), Ordering::Relaxed);
        Ok(())
    }

    /// `listener` looks on no more.
    pub fn remove(&self, listener: &Arc<T>) {
        let mut listeners = self.listeners.lock();
        listeners.retain(|known| !Arc::ptr_eq(known, listener));
        self.count.store(listeners.len(), Ordering::Relaxed);
    }
}
