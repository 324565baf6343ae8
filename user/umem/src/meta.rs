//! Memory for the allocator's own tables: never returned, so never more than its peak.

use core::ptr::NonNull;

use crate::lock::Lock;
use crate::sys;

const CHUNK: usize = 1 << 20;

struct Rest {
    next: Option<NonNull<u8>>,
    left: usize,
}

// SAFETY: **Metadata**: the rest belongs to whoever holds the lock.
unsafe impl Send for Rest {}

static REST: Lock<Rest> = Lock::new(Rest {
    next: None,
    left: 0,
});

/// `bytes` zeroed bytes, aligned to a cache line, for good.
pub fn alloc(bytes: usize) -> Option<NonNull<u8>> {
    let bytes = bytes.next_multiple_of(64);
    let mut rest = REST.lock();
    if rest.left < bytes {
        let chunk = bytes.next_multiple_of(CHUNK);
        rest.next = Some(sys::map(chunk)?);
        rest.left = chunk;
    }
    let start = rest.next?;
    rest.next = Some(start.map_addr(|address| address.saturating_add(bytes)));
    rest.left -= bytes;
    Some(start)
}

/// For `fork`.
pub fn acquire() {
    REST.acquire();
}

/// For `fork`.
pub fn release() {
    REST.release();
}
