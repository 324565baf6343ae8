//! What waiting asks of the kernel, or of a test.

use alloc::sync::Arc;

use base::Memory;
use base::lock::Family;

/// Where threads wait.
pub trait Host: 'static {
    /// What CPUs share data by.
    type Family: Family;
    /// The heap.
    type Memory: Memory;
    /// The threads.
    type Thread: Thread;

    /// The running thread.
    fn current() -> Arc<Self::Thread>;
}

/// A thread that can wait.
pub trait Thread {
    /// Ends its park, or lets its next one end at once.
    fn unpark(self: &Arc<Self>);
}

/// A lock of the host's.
pub type LockOf<H, T> = <<H as Host>::Family as Family>::Lock<T>;
