//! The memory of rings that sockets share with their programs.

use alloc::sync::Arc;

use base::{PAGE_BYTES, SharedMemory};
use capture::RingMemory;
use mm::shared_pages::{PageBudget, SharedPages};
use sync::Result;

/// What all rings of sockets may take together.
static BUDGET: PageBudget = PageBudget::share_of_memory(8);

/// Bytes that one more ring may have now.
pub fn bytes_left() -> u64 {
    BUDGET.bytes_left()
}

/// `bytes` bytes of zeros for a ring.
///
/// Errors: `OutOfMemory`.
pub fn allocate(bytes: usize) -> Result<Arc<SharedPages>> {
    SharedPages::new(bytes, &BUDGET, "socket:[packet]")
}

/// A ring of captured frames.
pub struct CaptureMemory<'a>(pub &'a SharedPages);

impl RingMemory for CaptureMemory<'_> {
    fn write(&mut self, mut at: usize, mut bytes: &[u8]) {
        while let Some((page, offset)) = self.0.place(at)
            && !bytes.is_empty()
        {
            let (now, rest) = bytes.split_at(bytes.len().min(PAGE_BYTES - offset));
            page.write(offset, now);
            at += now.len();
            bytes = rest;
        }
    }

    fn status(&self, at: usize) -> u32 {
        self.0.load(at)
    }

    fn publish(&mut self, at: usize, status: u32) {
        self.0.store(at, status);
    }
}
