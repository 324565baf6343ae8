//! A socket's send buffer: what it has sent and nobody has taken yet.
//!
//! The bytes lie with who receives them; who sends them is charged, so that one sender cannot
//! fill another's memory and SO_SNDBUF means what it says. A message is charged as Linux charges
//! it, with its bookkeeping, so that as many of them fit; a stream by its bytes. As there, a
//! sender goes on while less than its buffer is charged, and once it had to stop, or polls, it
//! may write when three quarters are free again.

use alloc::sync::Arc;
use core::sync::atomic::{AtomicUsize, Ordering};

use sockets::limits;
use sync::poll::{Events, Pollee};

/// Linux's bookkeeping in one block with a message, and beside it.
const INSIDE_BYTES: usize = 320;
const BESIDE_BYTES: usize = 256;
/// Larger messages lie in pages, which are not rounded up; this comes on top.
const BLOCK_BYTES_MAX: usize = 16 << 10;
const PAGED_BYTES: usize = 4352;
/// What the largest message leaves of the buffer.
const SPARED_BYTES: usize = 32;

/// See the module.
pub(super) struct Outbox {
    limit: AtomicUsize,
    charged: AtomicUsize,
    pollee: Arc<Pollee>,
}

impl Outbox {
    /// An empty one of the socket that `pollee` tells of.
    pub(super) fn new(pollee: Arc<Pollee>) -> Arc<Self> {
        Arc::new(Self {
            limit: AtomicUsize::new(limits::BUFFER_DEFAULT as usize),
            charged: AtomicUsize::new(0),
            pollee,
        })
    }

    /// Bytes that may be charged.
    pub(super) fn limit(&self) -> usize {
        self.limit.load(Ordering::Relaxed)
    }

    /// Changes that; who waits looks again.
    pub(super) fn set_limit(&self, bytes: u32) {
        self.limit.store(bytes as usize, Ordering::SeqCst);
        self.pollee.notify(Events::WRITABLE);
    }

    /// Bytes that are charged for messages.
    pub(super) fn charged(&self) -> usize {
        self.charged.load(Ordering::SeqCst)
    }

    /// Whether a message may be sent.
    pub(super) fn has_room(&self) -> bool {
        self.charged() < self.limit()
    }

    /// Whether who waits with `charged` bytes under way may go on.
    pub(super) fn is_writable(&self, charged: usize) -> bool {
        charged.saturating_mul(4) <= self.limit()
    }

    /// Whether a message of `bytes` is too long for the buffer.
    pub(super) fn is_too_long(&self, bytes: usize) -> bool {
        bytes > self.limit().saturating_sub(SPARED_BYTES)
    }

    /// Charges a message of `bytes` for as long as the answer lives.
    pub(super) fn charge(self: &Arc<Self>, bytes: usize) -> Charge {
        let bytes = cost(bytes);
        self.charged.fetch_add(bytes, Ordering::SeqCst);
        Charge {
            of: self.clone(),
            bytes,
        }
    }
}

/// What a message of `bytes` is charged.
fn cost(bytes: usize) -> usize {
    let block = bytes.saturating_add(INSIDE_BYTES);
    match block <= BLOCK_BYTES_MAX {
        true => block.next_power_of_two() + BESIDE_BYTES,
        false => bytes.saturating_add(PAGED_BYTES),
    }
}

/// A message under way; dropping it gives the room back to who sent it.
pub(super) struct Charge {
    of: Arc<Outbox>,
    bytes: usize,
}

impl Drop for Charge {
    fn drop(&mut self) {
        let before = self.of.charged.fetch_sub(self.bytes, Ordering::SeqCst);
        if self.of.is_writable(before - self.bytes) {
            self.of.pollee.notify(Events::WRITABLE);
        }
    }
}
