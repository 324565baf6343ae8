//! Freed allocations wait here before their memory is used again.

use core::ptr::NonNull;

use super::STATE;
use super::object::Header;

/// Allocations that wait, and bytes of the longest that does.
const WAITING: usize = 4096;
pub const LONGEST: usize = 64 << 10;

/// The queue, a ring.
pub struct Queue {
    waiting: [Option<NonNull<u8>>; WAITING],
    next: usize,
}

// SAFETY: freed allocations belong to the queue.
unsafe impl Send for Queue {}

impl Queue {
    /// A queue in which nothing waits.
    pub const fn new() -> Self {
        Self {
            waiting: [None; WAITING],
            next: 0,
        }
    }

    /// Puts one in, in the place of the oldest.
    fn exchange(&mut self, memory: NonNull<u8>) -> Option<NonNull<u8>> {
        let next = self.next % WAITING;
        self.next = next + 1;
        self.waiting[next].replace(memory)
    }
}

/// Puts a freed allocation in, and lets the oldest go.
pub fn put(memory: NonNull<u8>) {
    if Header::of(memory).size() > LONGEST {
        return super::dispose(memory);
    }
    let oldest = STATE.lock().queue.exchange(memory);
    if let Some(oldest) = oldest {
        Header::check_freed(oldest);
        super::dispose(oldest);
    }
}

/// Looks at all that wait. Each is taken out first: the report needs the lock, and nobody
/// else may give the memory back meanwhile.
pub fn check_all() {
    for place in 0..WAITING {
        let memory = STATE.lock().queue.waiting[place].take();
        if let Some(memory) = memory {
            Header::check_freed(memory);
        }
    }
}
