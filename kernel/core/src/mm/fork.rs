//! A child's copy of an address space.

use alloc::sync::Arc;

use mach::mem::Gather;

use super::AddressSpace;
use crate::error::{Error, Result};

impl AddressSpace {
    /// A copy for a forked process; private memory is shared until either side writes.
    pub fn fork(&self) -> Result<Arc<Self>> {
        let state = self.lock();
        let child = Self::new(state.layout)?;
        let mut copy = child.lock();
        copy.heap = state.heap.clone();
        copy.large = state.large;
        let (table, below) = (self.table()?, child.table()?);
        let mut gather = Gather::new(table);
        for area in state.areas.iter().filter(|area| !area.traits.no_fork) {
            let mut inherited = area.clone();
            inherited.traits.locked = false;
            copy.promise.grow(inherited.promised_bytes())?;
            copy.areas.insert(inherited)?;
            if area.traits.wipe_on_fork {
                continue;
            }
            let private = !area.traits.shared;
            if !table.share_with(below, area.start, area.end, private, &mut gather) {
                return Err(Error::OutOfMemory);
            }
        }
        drop(gather);
        drop(copy);
        Ok(child)
    }
}
