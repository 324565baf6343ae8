//! A ring with its memory.

use alloc::sync::Arc;

use mach::mem::fallible;
use sockets::ring_memory::{self, SharedPages};
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
        if geometry.bytes() as u64 > ring_memory::bytes_left() {
            return Err(Error::OutOfMemory);
        }
        let memory = fallible::arc(SharedPages::new(geometry.bytes())?)?;
        Ok(Self { geometry, memory })
    }
}
