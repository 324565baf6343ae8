//! Freed allocations wait here before their memory is used again.

use core::ptr::NonNull;

use super::object::Header;
use crate::lock::Lock;

/// Allocations that wait, and bytes of the longest that does.
const WAITING: usize = 4096;
const LONGEST: usize = 64 << 10;

struct Queue {
    waiting: [Option<NonNull<u8>>; WAITING],
    next: usize,
}

// SAFETY: freed allocations belong to the queue.
unsafe impl Send for Queue {}

static QUEUE: Lock<Queue> = Lock::new(Queue {
    waiting: [None; WAITING],
    next: 0,
});

/// Puts a freed allocation in, and lets the oldest go.
pub fn put(memory: NonNull<u8>) {
    if Header::of(memory).size() > LONGEST {
        return super::dispose(memory);
    }
    let oldest = {
        let mut queue = QUEUE.lock();
        let next = queue.next % WAITING;
        queue.next = next + 1;
        queue.waiting[next].replace(memory)
    };
    if let Some(oldest) = oldest {
        Header::check_freed(oldest);
        super::dispose(oldest);
    }
}

/// Looks at all that wait.
pub fn check_all() {
    let queue = QUEUE.lock();
    for memory in queue.waiting.into_iter().flatten() {
        Header::check_freed(memory);
    }
}

/// For `fork`.
pub fn acquire() {
    QUEUE.acquire();
}

/// For `fork`.
pub fn release() {
    QUEUE.release();
}
