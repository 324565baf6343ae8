//! Memory of programs: address spaces and what they map.

use alloc::sync::Arc;
use base::VirtAddr;

use crate::error::Result;

/// What a program wanted to do with an address.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Access {
    /// A load.
    Read,
    /// A store.
    Write,
    /// An instruction fetch.
    Execute,
}

/// Why a fault could not be resolved.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FaultError {
    /// Nothing is mapped there (SIGSEGV, SEGV_MAPERR).
    NotMapped,
    /// The mapping forbids this access (SIGSEGV, SEGV_ACCERR).
    Forbidden,
    /// The page lies beyond the end of its file or cannot be read (SIGBUS).
    Bus,
    /// No memory is left.
    OutOfMemory,
}

/// The memory of one process.
pub struct AddressSpace {}

impl AddressSpace {
    /// The space of threads that have no program: only the kernel is mapped.
    pub fn kernel() -> Arc<Self> {
        Arc::new(Self {})
    }

    /// Makes this the CPU's address space.
    pub fn activate(&self) {}

    /// Resolves a fault at `address`, or says why it cannot be.
    pub fn fault(
        &self,
        _address: VirtAddr,
        _access: Access,
    ) -> core::result::Result<(), FaultError> {
        Err(FaultError::NotMapped)
    }

    /// The program break moves to `end`; returns where it is now.
    pub fn set_break(&self, end: VirtAddr) -> Result<VirtAddr> {
        Ok(end)
    }

    /// A copy for a forked process; private memory is shared until either side writes.
    pub fn fork(&self) -> Result<Arc<Self>> {
        Ok(Arc::new(Self {}))
    }

    /// Faults resolved so far: (without, with reading a file).
    pub fn fault_counts(&self) -> (u64, u64) {
        (0, 0)
    }

    /// The most memory that was resident, in bytes.
    pub fn resident_bytes_max(&self) -> u64 {
        0
    }

    /// For an address in memory that other spaces may share: what names it everywhere
    /// (a number of the memory object, the offset in it). `None` for private memory.
    pub fn shared_identity(&self, _address: VirtAddr) -> Result<Option<(usize, u64)>> {
        Ok(None)
    }
}
