//! A ring with its memory.

use alloc::sync::Arc;

use mm::shared_pages::SharedPages;
use sockets::ring_memory;
use sync::{Error, Result};
use xdp::{Entry, Geometry};

/// See the module.
#[derive(Clone)]
pub struct Ring {
    /// Its size.
    pub geometry: Geometry,
    /// Its memory, which mappings of it keep.
    pub memory: Arc<SharedPages>,
}

impl Ring {
    /// An empty ring.
    ///
    /// Errors: `Invalid` for a number of entries that cannot be, `OutOfMemory`.
    pub fn new(entries: i32, entry: Entry) -> Result<Self> {
        let entries = u32::try_from(entries).map_err(|_| Error::Invalid)?;
        let geometry = Geometry::check(entries, entry).ok_or(Error::Invalid)?;
        let memory = ring_memory::allocate(geometry.bytes())?;
        Ok(Self { geometry, memory })
    }
}
