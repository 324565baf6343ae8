//! One process: what its threads share.

use alloc::sync::Arc;

use super::Pid;
use crate::mm::AddressSpace;
use crate::sync::Slot;

/// A group of threads with one address space.
pub struct Process {
    /// Its number: that of its first thread.
    pub id: Pid,
    /// Its memory; exec exchanges it.
    pub space: Slot<AddressSpace>,
}

impl Process {
    /// A process without threads.
    pub fn new(id: Pid, space: Arc<AddressSpace>) -> Arc<Self> {
        Arc::new(Self { id, space: Slot::new(space) })
    }
}
